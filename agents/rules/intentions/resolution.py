"""Resolve and advance goals and errors by the signals of later turns. Pure.

Enters: an intention with its signals. Leaves: the same with `resolved_by` and `advanced_by` computed from scratch, so
that the arrival order of turns does not matter and a removed signal leaves no effect. Guaranteed: a signal only affects
entries that were said before it.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from agents.rules.text.stem_overlap import content_stems, stem_coverage
from schemas.intention import Intention, IntentionEntry, IntentionPart, ResolutionSignal

RESOLVABLE: tuple[IntentionPart, ...] = ("goals", "blocking_errors")
"""The lists with entries that can be done."""

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
    lists = {part: [without_signals(entry) for entry in intention.of(part)] for part in RESOLVABLE}
    stems = {part: [content_stems(entry.text) for entry in entries] for part, entries in lists.items()}
    for signal in sorted(intention.signs, key=lambda signal: (signal.at, signal.offset, signal.text)):
        if not _apply_signal(signal, lists, stems):
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
            if _is_earlier(entry, signal) and entry.resolved_by is None:
                resolves = _RESOLVES[part](signal, reported, about)
                entries[number] = _resolved(entry, signal) if resolves else _advanced(entry, signal)
                is_applied = True
    return is_applied


def _resolve_only_error(signal: ResolutionSignal, errors: list[IntentionEntry]) -> None:
    """Resolve the conversation's error by an unspecific "it works now", if there is exactly one."""
    if not signal.works or signal.conversation_id is None:
        return
    candidates = [number for number, entry in enumerate(errors) if _is_open_in_conversation(entry, signal)]
    if len({errors[number].text for number in candidates}) == 1:
        for number in candidates:
            errors[number] = _resolved(errors[number], signal)


def _is_open_in_conversation(entry: IntentionEntry, signal: ResolutionSignal) -> bool:
    is_same_conversation = entry.conversation_id == signal.conversation_id
    return entry.resolved_by is None and is_same_conversation and _is_earlier(entry, signal)


def _resolves_goal(signal: ResolutionSignal, reported: frozenset[str], about: frozenset[str]) -> bool:
    if signal.source == "model":
        return max(stem_coverage(reported, about), stem_coverage(about, reported)) >= MIN_SIGNAL_COVERAGE
    is_covered = stem_coverage(about, reported) >= MIN_SIGNAL_COVERAGE
    return is_covered and stem_coverage(reported, about) >= MIN_GOAL_COVERAGE


def _resolves_error(signal: ResolutionSignal, reported: frozenset[str], about: frozenset[str]) -> bool:
    if signal.source == "model":
        return max(stem_coverage(reported, about), stem_coverage(about, reported)) >= MIN_SIGNAL_COVERAGE
    return stem_coverage(about, reported) >= MIN_ERROR_COVERAGE


_RESOLVES: dict[IntentionPart, Callable[[ResolutionSignal, frozenset[str], frozenset[str]], bool]] = {
    "goals": _resolves_goal,
    "blocking_errors": _resolves_error,
}


def _is_earlier(entry: IntentionEntry, signal: ResolutionSignal) -> bool:
    """Return True if the entry precedes the signal. A `set` entry has no turn offset: only its time counts."""
    return entry.at < signal.at or (entry.source != "set" and entry.at == signal.at and entry.offset < signal.offset)


def without_signals(entry: IntentionEntry) -> IntentionEntry:
    """Remove the effects of all signals from an entry."""
    if entry.resolved_by is None and not entry.advanced_by:
        return entry
    return entry.model_copy(update={"resolved_by": None, "resolved_at": None, "advanced_by": ()})


def _resolved(entry: IntentionEntry, signal: ResolutionSignal) -> IntentionEntry:
    return entry.model_copy(update={"resolved_by": signal.memory_id, "resolved_at": signal.at})


def _advanced(entry: IntentionEntry, signal: ResolutionSignal) -> IntentionEntry:
    if signal.memory_id in entry.advanced_by:
        return entry
    return entry.model_copy(update={"advanced_by": (*entry.advanced_by, signal.memory_id)[-MAX_ADVANCES:]})


def latest_entries(
    entries: Sequence[IntentionEntry], limit: int, when: Callable[[IntentionEntry], datetime]
) -> list[IntentionEntry]:
    """Return the `limit` latest entries, oldest first; ties are broken by offset and text."""
    return sorted(entries, key=lambda entry: (when(entry), entry.offset, entry.text))[-limit:]
