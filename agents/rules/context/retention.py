"""Retention policies: what each interaction mode keeps in a context and what it drops, as sentence labels. Pure.

| mode | keeps | drops |
| --- | --- | --- |
| TASK | goal, constraints, state, safety | exploration, options not chosen, noise |
| EXPLORATION | recent turns, insights, decisions, open questions | task and implementation details |
| DEBUGGING | errors, recent changes, known constraints | successful task history, exploration |
| LEARNING | principles, examples, patterns | recent turns, implementation details |
| GENERAL | all in balance | nothing |
"""

from collections.abc import Mapping
from typing import NamedTuple

from agents.rules.cues.labels import NO_LABELS, SentenceLabel
from schemas.messages.assemble import Section
from schemas.state.interaction import InteractionMode


class RetentionPolicy(NamedTuple):
    """Labels of the memories for three sections, and of wanted and unwanted evidence.

    `unwanted_interactions`: turns said in these interaction modes are unwanted. A memory both wanted and unwanted is
    kept. `overflow_sections` may use the room left by others, in this order.
    """

    rules: SentenceLabel
    task_state: SentenceLabel
    decisions: SentenceLabel
    wanted: SentenceLabel
    unwanted: SentenceLabel
    unwanted_interactions: frozenset[InteractionMode]
    overflow_sections: tuple[Section, ...]


_WISHES = SentenceLabel.PREFERENCE | SentenceLabel.INSTRUCTION
_RULES = SentenceLabel.SAFETY | SentenceLabel.CONSTRAINT
_WINDOW_LAST: tuple[Section, ...] = ("retrieved_evidence", "recent_window")
_WINDOW_FIRST: tuple[Section, ...] = ("recent_window", "retrieved_evidence")
_EXPLORED: frozenset[InteractionMode] = frozenset({"EXPLORATION"})

RETENTION_POLICIES: Mapping[InteractionMode, RetentionPolicy] = {
    "TASK": RetentionPolicy(
        rules=_RULES | _WISHES,
        task_state=SentenceLabel.GOAL | SentenceLabel.DONE | SentenceLabel.PENDING,
        decisions=SentenceLabel.DECISION,
        wanted=_RULES
        | SentenceLabel.GOAL
        | SentenceLabel.DONE
        | SentenceLabel.PENDING
        | SentenceLabel.DECISION
        | SentenceLabel.CORRECTION,
        unwanted=SentenceLabel.SPECULATION | SentenceLabel.OPEN_QUESTION | SentenceLabel.COURTESY,
        unwanted_interactions=_EXPLORED,
        overflow_sections=_WINDOW_LAST,
    ),
    "EXPLORATION": RetentionPolicy(
        rules=_RULES | _WISHES,
        task_state=SentenceLabel.GOAL,
        decisions=SentenceLabel.DECISION | SentenceLabel.INSIGHT | SentenceLabel.OPEN_QUESTION,
        wanted=SentenceLabel.INSIGHT | SentenceLabel.DECISION | SentenceLabel.OPEN_QUESTION,
        unwanted=SentenceLabel.CODE | SentenceLabel.TOOL | SentenceLabel.ERROR | SentenceLabel.COURTESY,
        unwanted_interactions=frozenset(),
        overflow_sections=_WINDOW_FIRST,
    ),
    "DEBUGGING": RetentionPolicy(
        rules=_RULES,
        task_state=SentenceLabel.ERROR | SentenceLabel.CHANGE | SentenceLabel.GOAL,
        decisions=SentenceLabel.DECISION | SentenceLabel.CHANGE,
        wanted=_RULES | SentenceLabel.ERROR | SentenceLabel.CHANGE | SentenceLabel.CORRECTION,
        unwanted=SentenceLabel.DONE | SentenceLabel.SPECULATION | SentenceLabel.OPEN_QUESTION | SentenceLabel.COURTESY,
        unwanted_interactions=_EXPLORED,
        overflow_sections=_WINDOW_FIRST,
    ),
    "LEARNING": RetentionPolicy(
        rules=_RULES | _WISHES | SentenceLabel.PRINCIPLE,
        task_state=NO_LABELS,
        decisions=SentenceLabel.PRINCIPLE | SentenceLabel.PATTERN | SentenceLabel.EXAMPLE | SentenceLabel.INSIGHT,
        wanted=SentenceLabel.PRINCIPLE | SentenceLabel.EXAMPLE | SentenceLabel.PATTERN | SentenceLabel.REASON,
        unwanted=SentenceLabel.TOOL
        | SentenceLabel.ERROR
        | SentenceLabel.DONE
        | SentenceLabel.PENDING
        | SentenceLabel.CHANGE
        | SentenceLabel.COURTESY,
        unwanted_interactions=frozenset(),
        overflow_sections=("retrieved_evidence",),
    ),
    "GENERAL": RetentionPolicy(
        rules=_RULES | _WISHES,
        task_state=SentenceLabel.GOAL | SentenceLabel.DONE | SentenceLabel.PENDING,
        decisions=SentenceLabel.DECISION,
        wanted=NO_LABELS,
        unwanted=NO_LABELS,
        unwanted_interactions=frozenset(),
        overflow_sections=_WINDOW_LAST,
    ),
}
"""By interaction mode."""

PROTECTED_TOP_K = 3
"""Best hits that are kept even if unwanted: they are relevant to the request."""

WANTED_RANK_DIVISOR = 2.0
"""Divides the rank of a wanted hit: the tenth moves up to the fifth."""


def apply_retention(
    hits: list[tuple[str, SentenceLabel, InteractionMode | None]], policy: RetentionPolicy
) -> tuple[list[str], list[str]]:
    """Return the ids of kept hits, most important first, and of dropped ones; `hits` come best first."""
    ranked: list[tuple[float, int, str]] = []
    dropped: list[str] = []
    for rank, (memory_id, labels, interaction_mode) in enumerate(hits):
        wanted = bool(labels & policy.wanted)
        unwanted = bool(labels & policy.unwanted) or interaction_mode in policy.unwanted_interactions
        if unwanted and not wanted and rank >= PROTECTED_TOP_K:
            dropped.append(memory_id)
        else:
            ranked.append((rank / WANTED_RANK_DIVISOR if wanted else float(rank), rank, memory_id))
    return [memory_id for _, _, memory_id in sorted(ranked)], dropped
