"""Sticky memories: kinds of memories that no interaction mode drops from a context. Pure.

Rules come from users and system prompts, never from assistants or tools; errors from users and tools. Superseded
memories are not admitted, and so never sticky.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np
from modestream_client.contexts import Breach

from agents.rules.context.visible_memories import VisibleSet
from agents.rules.cues.labels import SentenceLabel
from agents.rules.cues.mode_taxonomy import StickyKind
from agents.rules.index.columns import DAY_MS, MISSING, Mask


class Invariant(NamedTuple):
    """One kind of sticky memory; if room is short, higher priorities are kept first."""

    kind: StickyKind
    priority: int
    description: str
    label: SentenceLabel


_STICKY: Mapping[StickyKind, tuple[str, SentenceLabel]] = {
    "safety_requirement": ("a safety requirement", SentenceLabel.SAFETY),
    "user_correction": ("a correction by the user", SentenceLabel.CORRECTION),
    "hard_constraint": ("a hard constraint", SentenceLabel.CONSTRAINT),
    "blocking_error": ("a blocking error", SentenceLabel.ERROR),
}

STICKY_LABELS = reduce(or_, (label for _, label in _STICKY.values()))


def invariants_of(priorities: Mapping[StickyKind, int]) -> list[Invariant]:
    """Return the invariants with these priorities, highest first."""
    invariants = [Invariant(kind, priority, *_STICKY[kind]) for kind, priority in priorities.items()]
    return sorted(invariants, key=lambda invariant: -invariant.priority)


RULE_ROLES = SentenceLabel.USER | SentenceLabel.SYSTEM
"""Roles that can set rules."""

REPORTER_ROLES = SentenceLabel.USER | SentenceLabel.TOOL
"""Roles that can report an error or its resolution. An assistant that does may be wrong."""

MAX_CORRECTIONS = 3
"""Latest corrections of the conversation. Two or three in a row concern different things."""

MAX_ERRORS = 2
"""Latest unresolved errors of the conversation: the blocking one, and its cause."""

MAX_ERROR_AGE_MS = 7 * DAY_MS
"""Maximum age of an error of another conversation, relative to the scope's newest memory: later it was solved or given
up."""

MAX_STICKY = 1000
"""Sticky memories per request; more would only lengthen the list of breaches."""


def sticky_memories(visible: VisibleSet, invariants: Sequence[Invariant]) -> list[tuple[Invariant, int]]:
    """Return the numbers of sticky memories, each once, most important first; `invariants` are in that order."""
    sticky: dict[int, Invariant] = {}
    for invariant in invariants:
        for number in _candidates(visible, invariant.kind):
            sticky.setdefault(number, invariant)
            if len(sticky) == MAX_STICKY:
                return [(each, number) for number, each in sticky.items()]
    return [(each, number) for number, each in sticky.items()]


def breach_of(invariant: Invariant, memory_id: str) -> Breach:
    """Report a sticky memory that did not fit."""
    reason = f"the budget has no room for {invariant.description}"
    return Breach(memory_id=memory_id, priority=invariant.priority, reason=reason)


def _candidates(visible: VisibleSet, kind: StickyKind) -> list[int]:
    if kind == "safety_requirement":
        return visible.conversation_first(visible.labelled(SentenceLabel.SAFETY, RULE_ROLES, of_all_modes=True))
    if kind == "hard_constraint":
        return visible.conversation_first(visible.labelled(SentenceLabel.CONSTRAINT, RULE_ROLES))
    if kind == "blocking_error":
        return _current_errors(visible)
    corrections = visible.labelled(SentenceLabel.CORRECTION, SentenceLabel.USER)
    in_conversation = visible.newest_first(corrections & visible.in_conversation)[:MAX_CORRECTIONS]
    return [*in_conversation, *visible.newest_first(corrections)[:1]]


def _current_errors(visible: VisibleSet) -> list[int]:
    """Return the latest unresolved errors of the conversation, and the latest recent one from elsewhere."""
    conversations = visible.columns.conversations
    errors = visible.labelled(SentenceLabel.ERROR, REPORTER_ROLES) & (conversations != MISSING)
    # A resolved error blocks nothing, even if filters leave out the turn that says so.
    resolved = visible.labelled(SentenceLabel.RESOLVED, REPORTER_ROLES, of_all_modes=True) & visible.in_modes
    resolved &= conversations != MISSING
    last = np.full(int(conversations.max(initial=0)) + 1, MISSING)
    np.maximum.at(last, conversations[resolved], visible.time_rank[resolved])
    open_errors: Mask = errors & (visible.time_rank >= last[conversations])
    elsewhere = visible.newest_first(open_errors & ~visible.in_conversation)[:1]
    newest_ms = visible.columns.occurred_ms[visible.in_modes].max(initial=0)
    current = [number for number in elsewhere if newest_ms - visible.columns.occurred_ms[number] <= MAX_ERROR_AGE_MS]
    return [*visible.newest_first(open_errors & visible.in_conversation)[:MAX_ERRORS], *current]


MAX_STICKY_SHARE = 1 / 3
"""Share of the budget for sticky memories that have nothing to do with the query (`docs/contract.md`)."""


class SizedSticky(NamedTuple):
    """A sticky memory and the tokens of its line in the context."""

    invariant: Invariant
    memory_id: str
    tokens: int


class StickySplit(NamedTuple):
    """Sticky memories that are kept before all else, and those that are ordinary candidates.

    Both keep the order of the sticky memories, most important first.
    """

    kept: list[SizedSticky]
    demoted: list[SizedSticky]


def split_sticky(sticky: Sequence[SizedSticky], budget_tokens: int, related: Collection[str]) -> StickySplit:
    """Demote unrelated sticky memories if all together exceed their share of the budget.

    `related` are the ids of memories related to the query: its hits. Safety requirements and related ones are never
    demoted. A demoted memory without room is dropped, and is not a breach.
    """
    if sum(memory.tokens for memory in sticky) <= budget_tokens * MAX_STICKY_SHARE:
        return StickySplit(list(sticky), [])
    ids = frozenset(related)
    stays = [memory.invariant.kind == "safety_requirement" or memory.memory_id in ids for memory in sticky]
    staying = [memory for memory, is_kept in zip(sticky, stays, strict=True) if is_kept]
    return StickySplit(staying, [memory for memory, is_kept in zip(sticky, stays, strict=True) if not is_kept])
