"""Intentions as commands and retrieval return them. Pure.

Enters: a stored intention and the current records that it names. Leaves: the intention with repetitions merged into
one entry. Guaranteed: nothing of a turn that was forgotten or edited since, nor of a superseded or deleted item.
"""

from collections.abc import Callable, Iterable
from typing import Any

from agents.rules.memory.understanding import current_text_hash
from agents.rules.text.tokenizer import tokenize
from schemas.moments import iso
from schemas.state.intention import INTENTION_PARTS, Intention, IntentionEntry
from schemas.state.memories import Memory

ReadMemory = Callable[[str], Memory | None]
"""Return the current record of a memory id; None if it is gone."""


def visible_intention(stored: Intention, read: ReadMemory) -> Intention:
    """Return the intention reduced to what current memories say, with repetitions merged."""
    lists = {part: _merged(filter(None, (_visible(one, read) for one in stored.of(part)))) for part in INTENTION_PARTS}
    return Intention.model_validate({"version": stored.version, "set_at": stored.set_at, **lists})


def build_intention_view(visible: Intention) -> dict[str, Any]:
    """Return the reply of `get_intention` and `set_intention`: open entries by list, then the resolved ones."""
    lists: dict[str, Any] = {part: [_entry_view(one) for one in visible.open_entries(part)] for part in INTENTION_PARTS}
    done = [
        {"of": part, "resolved_by": entry.resolved_by, **_entry_view(entry)}
        for part, entry in visible.entries()
        if entry.is_done
    ]
    return {**lists, "resolved": done, "categories": list(visible.categories), "version": visible.version}


def _entry_view(entry: IntentionEntry) -> dict[str, Any]:
    return {
        "text": entry.text,
        "state": entry.state,
        "source": entry.source,
        "since": iso(entry.at),
        "item_id": entry.item_id,
        "advanced_by": list(entry.advanced_by),
        "evidence": [one.model_dump(mode="json") for one in entry.evidence],
    }


def _visible(entry: IntentionEntry, read: ReadMemory) -> IntentionEntry | None:
    """Return the entry without references to gone memories; None if its turn or item is not current."""
    if any(not is_text_current(memory_id, entry.text_hash, read) for memory_id in entry.memory_ids):
        return None
    item = read(entry.item_id) if entry.item_id else None
    if entry.item_id and (item is None or item.superseded_by is not None):
        return None
    names = tuple(one.name for one in item.item.categories) if item and item.item else entry.categories
    changed: dict[str, Any] = {"categories": names}
    if entry.resolved_by and read(entry.resolved_by) is None:
        changed |= {"resolved_by": None, "resolved_at": None}
    changed["advanced_by"] = tuple(one for one in entry.advanced_by if read(one) is not None)
    return entry.model_copy(update=changed)


def is_text_current(memory_id: str, text_hash: str | None, read: ReadMemory) -> bool:
    """True if the turn exists and its current text has this hash."""
    memory = read(memory_id)
    return memory is not None and current_text_hash(memory) == text_hash


def _merged(entries: Iterable[IntentionEntry]) -> list[IntentionEntry]:
    """Merge entries with the same words, or with the same item after a consolidation, in order of first mention."""
    groups: dict[str, list[IntentionEntry]] = {}
    key_of_item: dict[str, str] = {}
    for entry in entries:
        words = " ".join(tokenize(entry.text)) or entry.text
        key = key_of_item.setdefault(entry.item_id, words) if entry.item_id else words
        groups.setdefault(key, []).append(entry)
    return [_merge_group(group) for group in groups.values()]


def _merge_group(group: list[IntentionEntry]) -> IntentionEntry:
    """Merge repetitions into one entry: open if any is open, `set` if any was set."""
    if len(group) == 1:
        return group[0]
    open_entries = [entry for entry in group if not entry.is_done]
    template = next((entry for entry in group if entry.source == "set"), (open_entries or group)[-1])
    resolved_last = max(group, key=lambda entry: (entry.resolved_at or entry.at, entry.offset))
    return template.model_copy(
        update={
            "at": group[0].at,
            "evidence": tuple(dict.fromkeys(one for entry in group for one in entry.evidence)),
            "item_id": next((entry.item_id for entry in group if entry.item_id), None),
            "resolved_by": None if open_entries else resolved_last.resolved_by,
            "resolved_at": None if open_entries else resolved_last.resolved_at,
            "advanced_by": tuple(dict.fromkeys(one for entry in group for one in entry.advanced_by)),
            "categories": tuple(dict.fromkeys(name for entry in group for name in entry.categories)),
        }
    )
