"""What is shown of an intention: what rests on memories that are there, each thing once. Pure.

Enters: an intention as it is kept, and the records that it names, as far as they are there. Leaves: the intention with
one entry for what several turns say. Guaranteed: nothing of a turn that was forgotten or says something else by now,
nor of an item that is gone or that another has taken the place of.
"""

from collections.abc import Callable, Iterable
from typing import Any

from agents.rules.memory.understanding import current_text_hash
from agents.rules.text.tokenizer import tokenize
from schemas.intention import INTENTION_PARTS, Intention, IntentionEntry
from schemas.memories import Memory
from schemas.moments import iso

ReadMemory = Callable[[str], Memory | None]
"""The record of a memory."""


def visible_intention(kept: Intention, find: ReadMemory) -> Intention:
    """The intention as it may be shown."""
    lists = {part: _merged(filter(None, (_live(entry, find) for entry in kept.of(part)))) for part in INTENTION_PARTS}
    return Intention.model_validate({"version": kept.version, "set_at": kept.set_at, **lists})


def build_intention_view(view: Intention) -> dict[str, Any]:
    """The intention as `get_intention` and `set_intention` answer it: what still stands, by its list; then the rest."""
    lists: dict[str, Any] = {part: [_shown(entry) for entry in view.open_entries(part)] for part in INTENTION_PARTS}
    done = [
        {"of": part, "resolved_by": entry.resolved_by, **_shown(entry)} for part, entry in view.entries() if entry.done
    ]
    return {**lists, "resolved": done, "categories": list(view.categories), "version": view.version}


def _shown(entry: IntentionEntry) -> dict[str, Any]:
    return {
        "text": entry.text,
        "state": entry.state,
        "source": entry.source,
        "since": iso(entry.at),
        "item_id": entry.item_id,
        "advanced_by": list(entry.advanced_by),
        "evidence": [one.model_dump(mode="json") for one in entry.evidence],
    }


def _live(entry: IntentionEntry, find: ReadMemory) -> IntentionEntry | None:
    """The entry as far as it rests on what is there; None where it rests on something that is not."""
    if any(not is_text_current(memory_id, entry.text_hash, find) for memory_id in entry.memory_ids):
        return None
    item = find(entry.item_id) if entry.item_id else None
    if entry.item_id and (item is None or item.superseded_by is not None):
        return None
    names = tuple(one.name for one in item.item.categories) if item and item.item else entry.categories
    changed: dict[str, Any] = {"categories": names}
    if entry.resolved_by and find(entry.resolved_by) is None:
        changed |= {"resolved_by": None, "resolved_at": None}
    changed["advanced_by"] = tuple(one for one in entry.advanced_by if find(one) is not None)
    return entry.model_copy(update=changed)


def is_text_current(memory_id: str, text_hash: str | None, find: ReadMemory) -> bool:
    """Whether a turn is there and still has the text with this hash."""
    memory = find(memory_id)
    return memory is not None and current_text_hash(memory) == text_hash


def _merged(entries: Iterable[IntentionEntry]) -> list[IntentionEntry]:
    """One entry for each thing that is said, in the order in which it was said first.

    The same words are the same thing, and so is what rests on one item: a consolidation has merged it.
    """
    groups: dict[str, list[IntentionEntry]] = {}
    of_item: dict[str, str] = {}
    for entry in entries:
        words = " ".join(tokenize(entry.text)) or entry.text
        thing = of_item.setdefault(entry.item_id, words) if entry.item_id else words
        groups.setdefault(thing, []).append(entry)
    return [_one(group) for group in groups.values()]


def _one(group: list[IntentionEntry]) -> IntentionEntry:
    """What several say as one: it stands while it stands for any of them, and was set where one was set."""
    if len(group) == 1:
        return group[0]
    standing = [entry for entry in group if not entry.done]
    model = next((entry for entry in group if entry.source == "set"), (standing or group)[-1])
    ended = max(group, key=lambda entry: (entry.resolved_at or entry.at, entry.offset))
    return model.model_copy(
        update={
            "at": group[0].at,
            "evidence": tuple(dict.fromkeys(one for entry in group for one in entry.evidence)),
            "item_id": next((entry.item_id for entry in group if entry.item_id), None),
            "resolved_by": None if standing else ended.resolved_by,
            "resolved_at": None if standing else ended.resolved_at,
            "advanced_by": tuple(dict.fromkeys(one for entry in group for one in entry.advanced_by)),
            "categories": tuple(dict.fromkeys(name for entry in group for name in entry.categories)),
        }
    )
