"""How an intention changes: by what was found in a turn, by `set_intention`, and by forgetting. Pure.

Enters: an intention and an event. Leaves: the intention after it, with a version one higher where anything is another.
Guaranteed: the same event again changes nothing; turns may come in any order, as long as no list is full; no list has
more than a fixed number of entries.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from agents.rules.intentions.extraction import TurnStatements, extract_statements
from agents.rules.intentions.resolution import apply_signs, latest_entries, without_signs
from agents.rules.intentions.view import ReadMemory, is_text_current
from schemas.events import Learned
from schemas.intention import INTENTION_PARTS, Intention, IntentionEntry, IntentionPart, ResolutionSignal

MAX_OPEN_ENTRIES = 40
"""Entries of a list that still stand; the oldest leaves. Nobody is after more at once, and a context holds fewer."""

MAX_DONE_ENTRIES = 20
"""Entries of a list that are done and still told: what a week or two of work leaves."""

MAX_PENDING_SIGNS = 30
"""Signs that end nothing yet, the latest: what they speak of may come late, after a replay in another order."""


def apply_learned(before: Intention, event: Learned) -> Intention:
    """The intention once what it has of a turn is replaced by what was found there."""
    entries, signs = extract_statements(event)
    if (entries, signs) == _of_turn(before, event):
        return before
    lists: dict[IntentionPart, list[IntentionEntry]] = {
        part: [one for one in before.of(part) if not _rests_on(one, event)] for part in INTENTION_PARTS
    }
    for part, entry in entries:
        lists[part].append(entry)
    others = [sign for sign in before.signs if sign.memory_id != event.memory_id]
    return _settled(before, lists, [*others, *signs])


def apply_set_intention(
    before: Intention, wanted: Iterable[tuple[IntentionPart, Sequence[str]]], at: datetime, offset: int
) -> Intention:
    """The intention once these lists are set; what was set in them before goes, what was inferred stays.

    A command that was carried out already, by its place `offset`, changes nothing. What is set again as it stands keeps
    its time; what was done meanwhile is open again.
    """
    if offset <= before.set_at:
        return before
    lists = {part: list(before.of(part)) for part in INTENTION_PARTS}
    for part, texts in wanted:
        kept = {one.text: one for one in before.open_entries(part) if one.source == "set"}
        new = (IntentionEntry(text=text, source="set", at=at, offset=offset) for text in dict.fromkeys(texts))
        lists[part] = [one for one in lists[part] if one.source != "set"]
        lists[part] += [kept.get(one.text, one) for one in new]
    return _settled(before, lists, before.signs).model_copy(update={"set_at": offset})


def drop_set_entries(before: Intention, offset: int) -> Intention:
    """The intention without what was set by a command that stands before this place."""
    lists = {
        part: [one for one in before.of(part) if one.source != "set" or one.offset >= offset]
        for part in INTENTION_PARTS
    }
    return _settled(before, lists, before.signs)


def drop_stale_entries(before: Intention, find: ReadMemory) -> Intention:
    """The intention without what rests on memories that are not there, or say something else by now."""
    lists = {part: [one for one in before.of(part) if _is_there(one, find)] for part in INTENTION_PARTS}
    return _settled(
        before, lists, [sign for sign in before.signs if is_text_current(sign.memory_id, sign.text_hash, find)]
    )


def _is_there(entry: IntentionEntry, find: ReadMemory) -> bool:
    has_item = entry.item_id is None or find(entry.item_id) is not None
    return has_item and all(is_text_current(memory_id, entry.text_hash, find) for memory_id in entry.memory_ids)


def _of_turn(before: Intention, event: Learned) -> TurnStatements:
    """What the intention has of a turn, as the turn said it."""
    entries = tuple((part, without_signs(entry)) for part, entry in before.entries() if _rests_on(entry, event))
    return entries, tuple(sign for sign in before.signs if sign.memory_id == event.memory_id)


def _settled(
    before: Intention, lists: dict[IntentionPart, list[IntentionEntry]], signs: Iterable[ResolutionSignal]
) -> Intention:
    """The intention with these lists and signs: resolved anew, in order, within the bounds, with its version."""
    every: dict[str, object] = {part: tuple(sorted(found, key=_when)) for part, found in lists.items()}
    ordered = _ordered(signs)
    after = apply_signs(before.model_copy(update={**every, "signs": ordered}))
    bounded: dict[str, tuple[IntentionEntry, ...]] = {part: _bounded(after.of(part)) for part in INTENTION_PARTS}
    after = after.model_copy(update={**bounded, "signs": _wanted(ordered, bounded.values())})
    return before if after == before else after.model_copy(update={"version": before.version + 1})


def _ordered(signs: Iterable[ResolutionSignal]) -> tuple[ResolutionSignal, ...]:
    return tuple(sorted(signs, key=lambda sign: (sign.at, sign.offset, sign.source, sign.text)))


def _when(entry: IntentionEntry) -> tuple[datetime, int]:
    return entry.at, entry.offset


def _bounded(entries: Sequence[IntentionEntry]) -> tuple[IntentionEntry, ...]:
    standing = latest_entries([one for one in entries if one.resolved_by is None], MAX_OPEN_ENTRIES, lambda one: one.at)
    done = latest_entries(
        [one for one in entries if one.resolved_by], MAX_DONE_ENTRIES, lambda one: one.resolved_at or one.at
    )
    kept = {id(one) for one in (*standing, *done)}
    return tuple(one for one in entries if id(one) in kept)


def _wanted(
    signs: Sequence[ResolutionSignal], lists: Iterable[Sequence[IntentionEntry]]
) -> tuple[ResolutionSignal, ...]:
    """The signs that something kept rests on, and the latest of the others."""
    needed = {one for entries in lists for entry in entries for one in (entry.resolved_by, *entry.advanced_by)}
    free = {id(sign) for sign in [sign for sign in signs if sign.memory_id not in needed][-MAX_PENDING_SIGNS:]}
    return tuple(sign for sign in signs if sign.memory_id in needed or id(sign) in free)


def _rests_on(entry: IntentionEntry, event: Learned) -> bool:
    return event.memory_id in entry.memory_ids
