"""Transitions of an intention: by a turn's statements, by `set_intention`, and by forgetting; its view. Pure.

Enters: an intention and an event. Leaves: the intention after it; `version` rises by one if anything changed.
Guaranteed: idempotent; independent of the arrival order of turns while no list is full; lists are bounded. The view
merges repetitions into one entry, and shows nothing of a turn that was forgotten or edited since, nor of a superseded
or deleted item.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from agents.rules.intentions.extraction import extract_statements
from agents.rules.memory.understanding import current_text_hash
from agents.rules.text.overlap import content_stems, stem_coverage
from agents.rules.text.tokenizer import tokenize
from schemas.internal.events import Learned
from schemas.moments import iso
from schemas.state.intention import INTENTION_PARTS, Intention, IntentionEntry, IntentionPart, ResolutionSignal
from schemas.state.memories import ReadMemory


def visible_intention(stored: Intention, read: ReadMemory) -> Intention:
    """Return the intention reduced to statements of current memories, with repetitions merged."""
    lists: dict[str, list[IntentionEntry]] = {}
    for part in INTENTION_PARTS:
        # Entries with the same words, or with the same item after a consolidation, in order of first mention.
        groups: dict[str, list[IntentionEntry]] = {}
        key_of_item: dict[str, str] = {}
        for entry in filter(None, (_visible(entry, read) for entry in stored.of(part))):
            words = words_of(entry.text)
            key = key_of_item.setdefault(entry.item_id, words) if entry.item_id else words
            groups.setdefault(key, []).append(entry)
        lists[part] = [_merge_group(group) for group in groups.values()]
    return Intention.model_validate({"version": stored.version, "set_at": stored.set_at, **lists})


def build_intention_view(visible: Intention) -> dict[str, Any]:
    """Return the reply of `get_intention` and `set_intention`: open entries by list, then the resolved ones."""
    lists: dict[str, Any] = {
        part: [_entry_view(open_entry) for open_entry in visible.open_entries(part)] for part in INTENTION_PARTS
    }
    done = [
        {
            "of": part,
            "resolved_by": entry.resolved_by,
            "expired_at": entry.expired_at and iso(entry.expired_at),
            **_entry_view(entry),
        }
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
        "evidence": [quote.model_dump(mode="json") for quote in entry.evidence],
    }


def _visible(entry: IntentionEntry, read: ReadMemory) -> IntentionEntry | None:
    """Return the entry without references to gone memories; None if its turn or item is not current."""
    if any(not is_text_current(memory_id, entry.text_hash, read) for memory_id in entry.memory_ids):
        return None
    item = read(entry.item_id) if entry.item_id else None
    if entry.item_id and (item is None or item.superseded_by is not None):
        return None
    names = tuple(category.name for category in item.item.categories) if item and item.item else entry.categories
    changed: dict[str, Any] = {"categories": names}
    if entry.resolved_by and read(entry.resolved_by) is None:
        changed |= {"resolved_by": None, "resolved_at": None}
    changed["advanced_by"] = tuple(memory_id for memory_id in entry.advanced_by if read(memory_id) is not None)
    return entry.model_copy(update=changed)


def is_text_current(memory_id: str, text_hash: str | None, read: ReadMemory) -> bool:
    memory = read(memory_id)
    return memory is not None and current_text_hash(memory) == text_hash


def words_of(text: str) -> str:
    """Return the words by which repetitions are recognised."""
    return " ".join(tokenize(text)) or text


def _merge_group(group: list[IntentionEntry]) -> IntentionEntry:
    """Merge repetitions into one entry: open if any is open, `set` if any was set."""
    if len(group) == 1:
        return group[0]
    open_entries = [entry for entry in group if not entry.is_done]
    template = next((entry for entry in group if entry.source == "set"), (open_entries or group)[-1])
    resolved_last = max(group, key=lambda entry: (_done_at(entry), entry.offset))
    return template.model_copy(
        update={
            "at": group[0].at,
            "evidence": tuple(dict.fromkeys(quote for entry in group for quote in entry.evidence)),
            "item_id": next((entry.item_id for entry in group if entry.item_id), None),
            "resolved_by": None if open_entries else resolved_last.resolved_by,
            "resolved_at": None if open_entries else resolved_last.resolved_at,
            "expired_at": None if open_entries else resolved_last.expired_at,
            "advanced_by": tuple(dict.fromkeys(memory_id for entry in group for memory_id in entry.advanced_by)),
            "categories": tuple(dict.fromkeys(name for entry in group for name in entry.categories)),
        }
    )


def _done_at(entry: IntentionEntry) -> datetime:
    return entry.resolved_at or entry.expired_at or entry.at


RESOLVABLE: tuple[IntentionPart, ...] = ("goals", "blocking_errors")
"""The lists with entries that can be done."""

RESOLVABLE_BY_RUN: tuple[IntentionPart, ...] = (*RESOLVABLE, "constraints")
"""The lists with entries that a consolidation may find done: a constraint was lifted."""

MIN_SIGNAL_COVERAGE = 0.6
"""Share of a signal's stems that an entry must cover to be resolved: "we shipped the beta", "ship the beta in May".
Above a half, so that a sentence about something else that mentions the entry in passing resolves nothing."""

MIN_GOAL_COVERAGE = 0.4
"""Share of a goal's stems that the signal must cover as well; a signal that names less only advances the goal."""

MIN_ERROR_COVERAGE = 0.5
"""Share of a signal's stems that an error must cover: reports of one error share few words, and errors are few."""

MAX_ADVANCES = 8
"""Turns listed as having advanced a goal, the latest."""


def apply_signals(intention: Intention) -> Intention:
    """Resolve and advance the entries of the intention by its signals."""
    lists = {part: [without_signals(entry) for entry in intention.of(part)] for part in RESOLVABLE_BY_RUN}
    reportable = {part: lists[part] for part in RESOLVABLE}
    stems = {part: [content_stems(entry.text) for entry in entries] for part, entries in reportable.items()}
    for signal in sorted(intention.signs, key=lambda signal: (signal.at, signal.offset, signal.text)):
        if signal.of_run:
            for entries in lists.values():
                words = words_of(signal.text)
                for number, entry in enumerate(entries):
                    # An entry set by the caller is resolved only by statements, as above.
                    is_open = entry.resolved_by is None and entry.source != "set"
                    if is_open and words_of(entry.text) == words and _is_earlier(entry, signal):
                        entries[number] = _resolved(entry, signal)
        elif not _apply_signal(signal, reportable, stems):
            _resolve_only_error(signal, lists["blocking_errors"])
    return intention.model_copy(update={part: tuple(entries) for part, entries in lists.items()})


def _apply_signal(
    signal: ResolutionSignal,
    lists: dict[IntentionPart, list[IntentionEntry]],
    stems: dict[IntentionPart, list[frozenset[str]]],
) -> bool:
    """Resolve or advance the entries that share a stem with the signal; return True if there are any."""
    reported, is_applied = content_stems(signal.text), False
    for part, entries in lists.items():
        for number in [number for number, about in enumerate(stems[part]) if not reported.isdisjoint(about)]:
            entry, about = entries[number], stems[part][number]
            # An entry set by the caller is resolved by statements, but never by a model's reading of them.
            may_resolve = signal.source == "said" or entry.source != "set"
            if may_resolve and _is_earlier(entry, signal) and entry.resolved_by is None:
                if _resolves(signal, part, reported, about):
                    entries[number] = _resolved(entry, signal)
                elif signal.memory_id not in entry.advanced_by:
                    advanced_by = (*entry.advanced_by, signal.memory_id)[-MAX_ADVANCES:]
                    entries[number] = entry.model_copy(update={"advanced_by": advanced_by})
                is_applied = True
    return is_applied


def _resolve_only_error(signal: ResolutionSignal, errors: list[IntentionEntry]) -> None:
    # An unspecific "it works now" is about the conversation's error, if there is exactly one.
    if not signal.works or signal.conversation_id is None:
        return
    candidates = [
        number
        for number, entry in enumerate(errors)
        if entry.resolved_by is None and entry.conversation_id == signal.conversation_id and _is_earlier(entry, signal)
    ]
    if len({errors[number].text for number in candidates}) == 1:
        for number in candidates:
            errors[number] = _resolved(errors[number], signal)


def _resolves(signal: ResolutionSignal, part: IntentionPart, reported: frozenset[str], about: frozenset[str]) -> bool:
    of_signal, of_entry = stem_coverage(about, reported), stem_coverage(reported, about)
    if signal.source == "model":
        return max(of_entry, of_signal) >= MIN_SIGNAL_COVERAGE
    if part == "blocking_errors":
        return of_signal >= MIN_ERROR_COVERAGE
    return of_signal >= MIN_SIGNAL_COVERAGE and of_entry >= MIN_GOAL_COVERAGE


def _is_earlier(entry: IntentionEntry, signal: ResolutionSignal) -> bool:
    """Return True if the entry precedes the signal. A `set` entry has no turn offset: only its time counts."""
    return entry.at < signal.at or (entry.source != "set" and entry.at == signal.at and entry.offset < signal.offset)


def without_signals(entry: IntentionEntry) -> IntentionEntry:
    if entry.resolved_by is None and not entry.advanced_by:
        return entry
    return entry.model_copy(update={"resolved_by": None, "resolved_at": None, "advanced_by": ()})


def _resolved(entry: IntentionEntry, signal: ResolutionSignal) -> IntentionEntry:
    return entry.model_copy(update={"resolved_by": signal.memory_id, "resolved_at": signal.at})


def latest_entries(
    entries: Sequence[IntentionEntry], limit: int, when: Callable[[IntentionEntry], datetime]
) -> list[IntentionEntry]:
    """Return the `limit` latest entries, oldest first; ties are broken by offset and text."""
    return sorted(entries, key=lambda entry: (when(entry), entry.offset, entry.text))[-limit:]


MAX_OPEN_ENTRIES = 40
"""Maximum open inferred entries of a list; the oldest is dropped. More is not a realistic intention, and a context
shows fewer."""

MAX_DONE_ENTRIES = 20
"""Maximum resolved inferred entries of a list that are still shown: a week or two of work."""

MAX_PENDING_SIGNALS = 30
"""Maximum signals without effect so far, the latest: a replay in another order may bring their entries later."""


def apply_learned(before: Intention, event: Learned) -> Intention:
    """Replace the entries and signals of a turn by those that the event gives."""
    stated, signals = extract_statements(event)
    entries_before = tuple(
        (part, without_signals(entry)) for part, entry in before.entries() if event.memory_id in entry.memory_ids
    )
    signals_before = tuple(signal for signal in before.signs if signal.memory_id == event.memory_id)
    # What consolidations have found stays while the turn says the same.
    text_hash = event.memory and current_text_hash(event.memory)
    signals += tuple(signal for signal in signals_before if signal.of_run and signal.text_hash == text_hash)
    expired = {(part, entry.text): entry.expired_at for part, entry in entries_before if entry.text_hash == text_hash}
    entries = tuple(
        (part, entry.model_copy(update={"expired_at": expired.get((part, entry.text))})) for part, entry in stated
    )
    if (entries, {*signals}) == (entries_before, {*signals_before}):
        return before
    lists: dict[IntentionPart, list[IntentionEntry]] = {
        part: [entry for entry in before.of(part) if event.memory_id not in entry.memory_ids]
        for part in INTENTION_PARTS
    }
    for part, entry in entries:
        lists[part].append(entry)
    others = (signal for signal in before.signs if signal.memory_id != event.memory_id)
    return _updated(before, lists, [*others, *signals])


def apply_set_intention(
    before: Intention, wanted: Iterable[tuple[IntentionPart, Sequence[str]]], at: datetime, offset: int
) -> Intention:
    """Replace the `set` entries of the given lists; inferred entries stay.

    A command at or before the offset that was applied last changes nothing. An open entry that is set again keeps its
    time; a resolved one is reopened.
    """
    if offset <= before.set_at:
        return before
    lists = {part: list(before.of(part)) for part in INTENTION_PARTS}
    for part, texts in wanted:
        set_before = {entry.text: entry for entry in before.open_entries(part) if entry.source == "set"}
        new = (IntentionEntry(text=text, source="set", at=at, offset=offset) for text in dict.fromkeys(texts))
        lists[part] = [entry for entry in lists[part] if entry.source != "set"]
        lists[part] += [set_before.get(entry.text, entry) for entry in new]
    return _updated(before, lists, before.signs).model_copy(update={"set_at": offset})


def add_signals(before: Intention, signals: Iterable[ResolutionSignal]) -> Intention:
    """Apply further signals; those that are there, or have no effect, are left out."""
    further = [signal for signal in dict.fromkeys(signals) if signal not in before.signs]
    lists = {part: list(before.of(part)) for part in INTENTION_PARTS}
    after = _updated(before, lists, [*before.signs, *further])
    effective = {
        memory_id for _, entry in after.entries() for memory_id in (entry.resolved_by, *entry.advanced_by) if memory_id
    }
    used = [signal for signal in further if signal.memory_id in effective]
    return _updated(before, lists, [*before.signs, *used])


def expire_entries(before: Intention, at: datetime, is_past: Callable[[IntentionEntry], bool]) -> Intention:
    """Mark the open constraints whose own last day is past."""
    lists = {part: list(before.of(part)) for part in INTENTION_PARTS}
    lists["constraints"] = [
        entry.model_copy(update={"expired_at": at}) if not entry.is_done and is_past(entry) else entry
        for entry in lists["constraints"]
    ]
    return _updated(before, lists, before.signs)


def newly_done(before: Intention, after: Intention) -> list[tuple[IntentionPart, IntentionEntry]]:
    """Return the entries of a visible intention that are done, and were open before."""
    were_open = {(part, words_of(entry.text)) for part, entry in before.entries() if not entry.is_done}
    return [
        (part, entry) for part, entry in after.entries() if entry.is_done and (part, words_of(entry.text)) in were_open
    ]


def drop_set_entries(before: Intention, offset: int) -> Intention:
    """Drop the entries that were set by commands before `offset`."""
    return _updated(before, _lists_set_since(before, offset, drops_said=False), before.signs)


def forget_intention(before: Intention, offset: int) -> Intention:
    """Keep only entries set by commands since `offset`, as in an intention that begins then."""
    return _updated(Intention(set_at=before.set_at), _lists_set_since(before, offset, drops_said=True), ())


def _lists_set_since(before: Intention, offset: int, *, drops_said: bool) -> dict[IntentionPart, list[IntentionEntry]]:
    return {
        part: [
            entry for entry in before.of(part) if (entry.offset >= offset if entry.source == "set" else not drops_said)
        ]
        for part in INTENTION_PARTS
    }


def drop_stale_entries(before: Intention, read: ReadMemory) -> Intention:
    """Drop the entries and signals of memories that are gone or have another text now."""

    def is_current(entry: IntentionEntry) -> bool:
        has_item = entry.item_id is None or read(entry.item_id) is not None
        return has_item and all(is_text_current(memory_id, entry.text_hash, read) for memory_id in entry.memory_ids)

    lists = {part: [*filter(is_current, before.of(part))] for part in INTENTION_PARTS}
    signals = [signal for signal in before.signs if is_text_current(signal.memory_id, signal.text_hash, read)]
    return _updated(before, lists, signals)


def _updated(
    before: Intention, lists: dict[IntentionPart, list[IntentionEntry]], signals: Iterable[ResolutionSignal]
) -> Intention:
    """Return the intention with these lists and signals: sorted, resolved again, bounded, and versioned."""
    ordered_lists: dict[str, object] = {
        part: tuple(sorted(entries, key=lambda entry: (entry.at, entry.offset))) for part, entries in lists.items()
    }
    ordered = tuple(sorted(signals, key=lambda signal: (signal.at, signal.offset, signal.source, signal.text)))
    after = apply_signals(before.model_copy(update={**ordered_lists, "signs": ordered}))
    bounded: dict[str, tuple[IntentionEntry, ...]] = {part: _bounded(after.of(part)) for part in INTENTION_PARTS}
    needed = {
        memory_id
        for entries in bounded.values()
        for entry in entries
        for memory_id in (entry.resolved_by, *entry.advanced_by)
    }
    pending = [signal for signal in ordered if signal.memory_id not in needed][-MAX_PENDING_SIGNALS:]
    latest = {id(signal) for signal in pending}
    signs = tuple(signal for signal in ordered if signal.memory_id in needed or id(signal) in latest)
    after = after.model_copy(update={**bounded, "signs": signs})
    return before if after == before else after.model_copy(update={"version": before.version + 1})


def _bounded(entries: Sequence[IntentionEntry]) -> tuple[IntentionEntry, ...]:
    """Return the latest entries; set entries stay, as `set_intention` bounds them itself."""
    stated = [entry for entry in entries if entry.source != "set"]
    opened = latest_entries([entry for entry in stated if not entry.is_done], MAX_OPEN_ENTRIES, lambda entry: entry.at)
    done = latest_entries([entry for entry in stated if entry.is_done], MAX_DONE_ENTRIES, _done_at)
    latest = {id(entry) for entry in (*opened, *done)}
    return tuple(entry for entry in entries if entry.source == "set" or id(entry) in latest)
