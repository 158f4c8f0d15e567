"""Which goals and errors are done, by what later turns say. Pure.

Enters: an intention with its signs. Leaves: the same with `resolved_by` and `advanced_by` as those signs have it,
whatever they were before: the order in which turns came does not matter, and a sign that goes takes its effect along.
Guaranteed: a sign only touches what was said before it.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from agents.rules.text.stem_overlap import content_stems, stem_coverage
from schemas.intention import Intention, IntentionEntry, IntentionPart, ResolutionSignal

RESOLVABLE: tuple[IntentionPart, ...] = ("goals", "blocking_errors")
"""The lists whose entries come to an end by being done."""

MIN_SIGN_COVERAGE = 0.6
"""How much of a sign must speak of an entry to end it: "we shipped the beta" of "ship the beta in May". Above a half,
so that a sentence about something else which names the thing in passing ends nothing."""

MIN_GOAL_COVERAGE = 0.4
"""How much of a goal that sign must name besides: one that names a single word of a long goal only advances it."""

MIN_ERROR_COVERAGE = 0.5
"""How much of a sign must speak of an error: reports of the same error share few words, and errors are few."""

MAX_ADVANCES = 8
"""Turns that are named as having advanced a goal, the latest."""


def apply_signs(intention: Intention) -> Intention:
    """The intention with what its signs end and advance."""
    fresh = {part: [without_signs(entry) for entry in intention.of(part)] for part in RESOLVABLE}
    abouts = {part: [content_stems(entry.text) for entry in entries] for part, entries in fresh.items()}
    for sign in sorted(intention.signs, key=lambda sign: (sign.at, sign.offset, sign.text)):
        if not _applied(sign, fresh, abouts):
            _end_the_only_error(sign, fresh["blocking_errors"])
    return intention.model_copy(update={part: tuple(entries) for part, entries in fresh.items()})


def _applied(
    sign: ResolutionSignal,
    fresh: dict[IntentionPart, list[IntentionEntry]],
    abouts: dict[IntentionPart, list[frozenset[str]]],
) -> bool:
    """Let a sign end and advance what it speaks of; says whether it spoke of anything."""
    said, touched = content_stems(sign.text), False
    for part, entries in fresh.items():
        for place in [place for place, about in enumerate(abouts[part]) if not said.isdisjoint(about)]:
            entry, about = entries[place], abouts[part][place]
            if _before(entry, sign) and entry.resolved_by is None:
                ends = _ENDS[part](sign, said, about)
                entries[place] = _ended(entry, sign) if ends else _advanced(entry, sign)
                touched = True
    return touched


def _end_the_only_error(sign: ResolutionSignal, errors: list[IntentionEntry]) -> None:
    """Let "it works now", which says nothing of what, end the error of the conversation, if that has just one."""
    if not sign.works or sign.conversation_id is None:
        return
    there = [place for place, entry in enumerate(errors) if _open_there(entry, sign)]
    if len({errors[place].text for place in there}) == 1:
        for place in there:
            errors[place] = _ended(errors[place], sign)


def _open_there(entry: IntentionEntry, sign: ResolutionSignal) -> bool:
    return entry.resolved_by is None and entry.conversation_id == sign.conversation_id and _before(entry, sign)


def _ends_goal(sign: ResolutionSignal, said: frozenset[str], about: frozenset[str]) -> bool:
    if sign.source == "model":
        return max(stem_coverage(said, about), stem_coverage(about, said)) >= MIN_SIGN_COVERAGE
    return stem_coverage(about, said) >= MIN_SIGN_COVERAGE and stem_coverage(said, about) >= MIN_GOAL_COVERAGE


def _ends_error(sign: ResolutionSignal, said: frozenset[str], about: frozenset[str]) -> bool:
    if sign.source == "model":
        return max(stem_coverage(said, about), stem_coverage(about, said)) >= MIN_SIGN_COVERAGE
    return stem_coverage(about, said) >= MIN_ERROR_COVERAGE


_ENDS: dict[IntentionPart, Callable[[ResolutionSignal, frozenset[str], frozenset[str]], bool]] = {
    "goals": _ends_goal,
    "blocking_errors": _ends_error,
}


def _before(entry: IntentionEntry, sign: ResolutionSignal) -> bool:
    """Whether an entry was said before the sign; what was set has no place among the turns, only a time."""
    return entry.at < sign.at or (entry.source != "set" and entry.at == sign.at and entry.offset < sign.offset)


def without_signs(entry: IntentionEntry) -> IntentionEntry:
    """The entry as its own turn says it, before any sign."""
    if entry.resolved_by is None and not entry.advanced_by:
        return entry
    return entry.model_copy(update={"resolved_by": None, "resolved_at": None, "advanced_by": ()})


def _ended(entry: IntentionEntry, sign: ResolutionSignal) -> IntentionEntry:
    return entry.model_copy(update={"resolved_by": sign.memory_id, "resolved_at": sign.at})


def _advanced(entry: IntentionEntry, sign: ResolutionSignal) -> IntentionEntry:
    if sign.memory_id in entry.advanced_by:
        return entry
    return entry.model_copy(update={"advanced_by": (*entry.advanced_by, sign.memory_id)[-MAX_ADVANCES:]})


def latest_entries(
    found: Sequence[IntentionEntry], most: int, when: Callable[[IntentionEntry], datetime]
) -> list[IntentionEntry]:
    """At most so many entries, the latest; equal ones by their place and text, so that it is always the same ones."""
    return sorted(found, key=lambda entry: (when(entry), entry.offset, entry.text))[-most:]
