"""What is never dropped, whatever the interaction mode: the sticky invariants of seed 002, and which memories they are.

Pure. Rules are set by users and by whoever runs the assistant, never by an assistant or a tool; an error is reported by
users and tools. What was superseded is not admitted, so it is no rule any more.
"""

from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Literal, NamedTuple

import numpy as np

from agents.rules.context.visible_memories import VisibleSet
from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.columns import MISSING, Mask
from agents.rules.index.recency import DAY_MS
from schemas.assemble import Breach

StickyKind = Literal["safety_requirement", "user_correction", "hard_constraint", "blocking_error"]


class Invariant(NamedTuple):
    """One kind of memory that stays. Where not all find room, a higher priority stays before a lower one."""

    kind: StickyKind
    priority: int
    description: str
    mark: SentenceLabel


SAFETY = Invariant("safety_requirement", 1000, "a safety requirement is never dropped", SentenceLabel.SAFETY)
CORRECTION = Invariant("user_correction", 900, "the user's latest correction is always there", SentenceLabel.CORRECTION)
CONSTRAINT = Invariant("hard_constraint", 800, "what must or must not be is kept", SentenceLabel.CONSTRAINT)
ERROR = Invariant("blocking_error", 700, "an error that blocks now is kept", SentenceLabel.ERROR)

INVARIANTS: tuple[Invariant, ...] = (SAFETY, CORRECTION, CONSTRAINT, ERROR)
"""Highest priority first: seed 002, "Sticky Invariants"."""

STICKY_LABELS = reduce(or_, (invariant.mark for invariant in INVARIANTS))
"""The marks of all of them."""

RULE_ROLES = SentenceLabel.USER | SentenceLabel.SYSTEM
"""Who may say what must be."""

REPORTER_ROLES = SentenceLabel.USER | SentenceLabel.TOOL
"""Who sees that something fails, and that it works again. An assistant that says so may be wrong."""

MAX_CORRECTIONS = 3
"""Latest corrections of the conversation that are kept. Two or three in a row are about different things."""

MAX_ERRORS = 2
"""Latest unresolved errors of the conversation: one that blocks, and the one that it followed from."""

MAX_ERROR_AGE_MS = 7 * DAY_MS
"""An error of another conversation is current for a week of the scope's own time: then it was solved or given up."""

MAX_STICKY = 1000
"""Sticky memories of one request. What is beyond would only lengthen the list of breaches."""


def sticky_memories(sight: VisibleSet) -> list[tuple[Invariant, int]]:
    """The sticky memories by number, each once, in the order in which they are kept."""
    found: dict[int, Invariant] = {}
    for invariant, number in _all(sight):
        found.setdefault(number, invariant)
    return [(invariant, number) for number, invariant in found.items()][:MAX_STICKY]


def breach_of(invariant: Invariant, memory_id: str) -> Breach:
    """The account of a sticky memory that found no room."""
    return Breach(memory_id=memory_id, priority=invariant.priority, reason=f"no room, though {invariant.description}")


def _all(sight: VisibleSet) -> Iterator[tuple[Invariant, int]]:
    rules = {invariant: sight.labelled(invariant.mark, RULE_ROLES) for invariant in INVARIANTS}
    yield from ((SAFETY, number) for number in sight.conversation_first(rules[SAFETY]))
    yield from ((CORRECTION, number) for number in _latest_corrections(sight))
    yield from ((CONSTRAINT, number) for number in sight.conversation_first(rules[CONSTRAINT]))
    yield from ((ERROR, number) for number in _current_errors(sight))


def _latest_corrections(sight: VisibleSet) -> list[int]:
    """The user's last ones in the conversation, and the last one of the scope."""
    corrections = sight.labelled(SentenceLabel.CORRECTION, SentenceLabel.USER)
    return [
        *sight.newest_first(corrections & sight.in_conversation)[:MAX_CORRECTIONS],
        *sight.newest_first(corrections)[:1],
    ]


def _current_errors(sight: VisibleSet) -> list[int]:
    """The last unresolved ones of the conversation, and the last one from elsewhere that is not old."""
    open_errors = _unresolved(sight)
    elsewhere = sight.newest_first(open_errors & ~sight.in_conversation)[:1]
    newest_ms = sight.columns.occurred_ms[sight.admitted].max(initial=0)
    current = [one for one in elsewhere if newest_ms - sight.columns.occurred_ms[one] <= MAX_ERROR_AGE_MS]
    return [*sight.newest_first(open_errors & sight.in_conversation)[:MAX_ERRORS], *current]


def _unresolved(sight: VisibleSet) -> Mask:
    """Errors after which nobody said in the same conversation that it works."""
    talks = sight.columns.conversations
    errors = sight.labelled(SentenceLabel.ERROR, REPORTER_ROLES) & (talks != MISSING)
    resolved = sight.labelled(SentenceLabel.RESOLVED, REPORTER_ROLES) & (talks != MISSING)
    last = np.full(int(talks.max(initial=0)) + 1, MISSING)
    np.maximum.at(last, talks[resolved], sight.time_rank[resolved])
    unresolved: Mask = errors & (sight.time_rank >= last[talks])
    return unresolved
