"""A turn as a prompt for a language model, and a model's items held against the turn's text. Pure.

Enters: a template of the project, and what is stored. Leaves: a prompt whose system text is the template's alone, and
whose user text holds everything stored between fences that nothing stored can close. Guaranteed: bounded lengths.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from schemas.language import Prompt
from schemas.modes import Mode
from schemas.understanding import FoundItem, Understanding

MAX_TURN_CHARS = 12_000
"""Characters of the turn that a model reads: some 3,000 tokens; of a longer one the beginning and the end."""

MAX_EXCERPT_CHARS = 400
"""Characters of each turn before: enough to see its register."""

MAX_DESCRIPTION_CHARS = 600
"""Characters of a description or a hint: a user who declares a book there pays for it with every turn."""

MAX_LISTED_NAMES = 64
"""Modes and categories that are listed: what is declared beyond that no model weighs well."""

HEAD_SHARE = 0.75
"""Of a shortened text its beginning: people say first what a text is about, and last what they want."""

CHARS_PER_TOKEN = 3
"""Of a prompt, for what it will cost: few languages have less."""

FENCE_DIGITS = 24
"""96 bits: to find a text that contains its own mark is out of reach."""

PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
NON_SPACE = re.compile(r"\S+")
SYSTEM_HEADING, USER_HEADING = "# System\n", "# User\n"


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt as a file of the project: its text, and the version that is recorded on what it leads to."""

    text: str
    version: str


@dataclass(frozen=True, slots=True)
class RecentTurn:
    """One of the turns before, with the mode that it is in."""

    role: str
    mode: str
    text: str


@dataclass(frozen=True, slots=True)
class VerifiedItem:
    """An item whose quotation stands in the text, from `start` to before `end`, counted in code points."""

    item: FoundItem
    start: int
    end: int


def build_understanding_prompt(
    template: str,
    version: str,
    *,
    turn_text: str,
    role: str,
    speaker: str | None,
    occurred_at: datetime,
    modes: Sequence[Mode],
    recent: Sequence[RecentTurn],
    categories: Sequence[tuple[str, str]],
) -> Prompt:
    """What a model is asked about one turn. `categories` are names with descriptions, `recent` is oldest first.

    Raises ValueError for a template without its two parts or with a place that nothing fills.
    """
    parts = {
        "modes": _as_json(_described(mode) for mode in _named_once(modes)[:MAX_LISTED_NAMES]),
        "categories": _as_json(
            {"name": name, "description": clip_text(description, MAX_DESCRIPTION_CHARS)}
            for name, description in categories[:MAX_LISTED_NAMES]
        ),
        "recent": _as_json(
            {"role": turn.role, "mode": turn.mode, "text": clip_text(turn.text, MAX_EXCERPT_CHARS)} for turn in recent
        ),
        "about": _as_json([{"role": role, "speaker": speaker, "occurred_at": occurred_at.isoformat()}]),
        "turn": clip_text(turn_text, MAX_TURN_CHARS),
    }
    return fill_prompt(template, version, parts)


def fill_prompt(template: str, version: str, parts: Mapping[str, str]) -> Prompt:
    """A template with its places filled by what is stored; `{{mark}}` fences it.

    Raises ValueError for a template without its two parts or with a place that nothing fills.
    """
    system, user = _parts(template)
    return Prompt(system=system, user=_filled(user, {**parts, "mark": fence_mark(parts.values())}), version=version)


def clip_text(text: str, longest: int) -> str:
    """At most about `longest` characters of a text: its beginning and its end, and how many are left out between."""
    if len(text) <= longest:
        return text
    head = int(longest * HEAD_SHARE)
    tail = longest - head
    return f"{text[:head]}\n[… {len(text) - longest} characters left out …]\n{text[-tail:]}"


def fence_mark(texts: Iterable[str]) -> str:
    """Hexadecimal digits made of the hash of these texts, so that nobody can write a text that has its own mark."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:FENCE_DIGITS]


def verify_items(understanding: Understanding, text: str) -> list[VerifiedItem]:
    """The items whose quotation stands in the text, exactly, or else but for its white space. Others are dropped."""
    spaced = _Spaced(text)
    spans = ((item, spaced.span(item.quote)) for item in understanding.items)
    return [VerifiedItem(item, *span) for item, span in spans if span is not None]


class _Spaced:
    """A text, and the same with single spaces, made when needed. A pattern made of a quotation would cost seconds."""

    def __init__(self, text: str) -> None:
        self._text = text

    def span(self, quote: str) -> tuple[int, int] | None:
        """Where the quotation stands."""
        exact, words = quote.strip(), quote.split()
        if not words:
            return None
        if (start := self._text.find(exact)) >= 0:
            return start, start + len(exact)
        collapsed, places = self._collapsed
        wanted = " ".join(words)
        start = collapsed.find(wanted)
        return (places[start], places[start + len(wanted) - 1] + 1) if start >= 0 else None

    @cached_property
    def _collapsed(self) -> tuple[str, list[int]]:
        """The text with single spaces, and for each of its characters the place in the text."""
        words = list(NON_SPACE.finditer(self._text))
        places = [place for word in words for place in range(word.start(), word.end() + 1)]
        return " ".join(word[0] for word in words), places


def _parts(template: str) -> tuple[str, str]:
    if SYSTEM_HEADING not in template or USER_HEADING not in template:
        raise ValueError("a prompt has the parts `# System` and `# User`")
    system, user = template.split(SYSTEM_HEADING, 1)[1].split(USER_HEADING, 1)
    return system.strip(), user.strip()


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """Every place filled in one pass, so that a filled-in text that looks like a place stays what it is."""
    if unknown := sorted(set(PLACEHOLDER.findall(template)) - parts.keys()):
        raise ValueError(f"nothing fills the places {unknown} of the prompt")
    return PLACEHOLDER.sub(lambda place: parts[place[1]], template)


def _named_once(modes: Sequence[Mode]) -> list[Mode]:
    """Of modes with the same name the project's own."""
    return list({mode.name: mode for mode in sorted(modes, key=lambda mode: mode.project is not None)}.values())


def _described(mode: Mode) -> dict[str, str]:
    told = {"description": mode.description, "hints": mode.extraction_hints}
    return {"name": mode.name} | {name: clip_text(text, MAX_DESCRIPTION_CHARS) for name, text in told.items() if text}


def _as_json(entries: Iterable[Mapping[str, Any]]) -> str:
    """One entry a line, so that what a model is shown can be read by a person too."""
    return "[" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries) + "]"
