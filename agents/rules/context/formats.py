"""Formats of a context: entries as the JSON object of the user message. Pure.

`compact` spends tokens on texts: days in order, and one string for each entry, `[1] 09:30 Ana: …`, where the number is
the place of the memory in `references`. `full` has an object for each entry, with its id. Where a later statement has
changed what a text states, `compact` says so in `about`, `[1] was changed on 2026-03-01.`, where no text can fake it,
and `full` in a field.

Recalled text is untrusted data: it occurs only inside JSON strings, one entry per line, and can't escape its string or
its line. Counts of lines add up: each begins with a bracket or a quotation mark and ends in a line break. What `about`
says of an entry is counted with its line, about a token off; the whole prompt is counted once more.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Protocol

import orjson
from modestream_client.vocabulary import ContextFormat

from agents.rules.context.entries import Entry
from schemas.moments import iso

MEMORIES_NOTICE = "What was said earlier, oldest first. It may be outdated or wrong."

ENTRY_SEPARATOR = ",\n"
"""Between two entries; counted with each entry."""

DISTILLED = "summary"
"""The speaker of a distilled memory in the compact format."""

COUNTED_NUMBER = 99
"""The number with which an entry is counted: all numbers below 1,000 are one token of `cl100k_base`."""

_ESCAPES = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029", "<|": "\\u003c|"}
"""Characters that JSON allows unescaped, but that end a line or start a chat template token elsewhere."""


class PromptFormat(Protocol):
    """A format of the JSON object."""

    def line(self, entry: Entry) -> str:
        """Return the line of an entry, to be counted."""

    def day(self, entry: Entry, /) -> str:
        """Return the lines that the first entry of a day takes in addition, to be counted."""

    def body(self, entries: Sequence[Entry]) -> str:
        """Return the JSON object; `entries` come oldest first."""


class CompactFormat:
    """Days in order, one string for each entry; a text of the request has no number."""

    def line(self, entry: Entry) -> str:
        """Return the entry's string, with a number of the usual length, and what `about` says of it."""
        return self._line(entry, COUNTED_NUMBER) + ENTRY_SEPARATOR + _change(entry, COUNTED_NUMBER)

    def day(self, entry: Entry) -> str:
        """Return the opening and the closing line of the entry's day."""
        return f'"{_day_of(entry)}":[\n],\n'

    def body(self, entries: Sequence[Entry]) -> str:
        """Return `{"about": …, "memories": {day: [entry, …]}}`."""
        days, count, about = [], 0, MEMORIES_NOTICE
        for day, grouped in groupby(entries, _day_of):
            lines = []
            for entry in grouped:
                count += entry.memory_id is not None
                lines.append(self._line(entry, count))
                about += _change(entry, count)
            days.append(f'"{day}":[\n{ENTRY_SEPARATOR.join(lines)}\n]')
        return f'{{"about":{_json(about)},"memories":{{\n{ENTRY_SEPARATOR.join(days)}\n}}}}'

    def _line(self, entry: Entry, number: int) -> str:
        place = "" if entry.memory_id is None else f"[{number}] "
        speaker = entry.speaker or entry.role or DISTILLED
        return _json(f"{place}{_utc(entry.occurred_at):%H:%M} {speaker}: {entry.text}")


class FullFormat:
    """One object for each entry, with provenance; the role of a distilled memory is null."""

    def line(self, entry: Entry) -> str:
        """Return the entry's object."""
        return _json(_provenance(entry)) + ENTRY_SEPARATOR

    def day(self, _entry: Entry) -> str:
        """Return nothing: entries have their time."""
        return ""

    def body(self, entries: Sequence[Entry]) -> str:
        """Return `{"about": …, "memories": [entry, …]}`."""
        lines = ENTRY_SEPARATOR.join(_json(_provenance(entry)) for entry in entries)
        return f'{{"about":{_json(MEMORIES_NOTICE)},"memories":[\n{lines}\n]}}'


FORMATS: Mapping[ContextFormat, PromptFormat] = {"compact": CompactFormat(), "full": FullFormat()}


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


def _change(entry: Entry, number: int) -> str:
    return "" if entry.changed_at is None else f" [{number}] was changed on {_day(entry.changed_at)}."


def _day(moment: datetime) -> str:
    return _utc(moment).date().isoformat()


def _day_of(entry: Entry) -> str:
    return _day(entry.occurred_at)


def _provenance(entry: Entry) -> dict[str, object]:
    """Return the fields.

    `speaker` is present if known, `excerpt` if the content is only a part of the text, `changed_at` if it was changed.
    """
    shown: dict[str, object] = {
        "role": entry.role,
        "content": entry.text,
        "occurred_at": iso(entry.occurred_at),
        "memory_id": entry.memory_id,
    }
    if entry.speaker is not None:
        shown["speaker"] = entry.speaker
    if entry.excerpt:
        shown["excerpt"] = True
    if entry.changed_at is not None:
        shown["changed_at"] = iso(entry.changed_at)
    return shown


def _json(value: object) -> str:
    text = orjson.dumps(value).decode()
    for raw, escaped in _ESCAPES.items():
        text = text.replace(raw, escaped)
    return text
