"""What each interaction mode keeps in a context, and what it drops: the lists of seed 002 as marks. Pure: data.

| mode | keeps | drops |
| --- | --- | --- |
| TASK | goal, constraints, state, safety | exploration, options nobody chose, noise |
| EXPLORATION | recent turns, insights, decisions, open questions | task and implementation details |
| DEBUGGING | errors, recent changes, known constraints | successful task history, exploration |
| LEARNING | principles, examples, patterns | recent turns, implementation details |
| GENERAL | all in balance | nothing |
"""

from collections.abc import Mapping
from typing import NamedTuple

from agents.rules.cues.labels import NO_MARK, Mark
from schemas.assemble import Section
from schemas.interaction import InteractionMode


class Keeping(NamedTuple):
    """By marks: what is wanted in three sections and among the evidence, and what is unwanted there.

    `spent_as` are interaction modes whose turns are unwanted. A memory that is both wanted and unwanted is kept.
    `spare` are the sections that may take room that others have left, in this order.
    """

    rules: Mark
    task_state: Mark
    decisions: Mark
    wanted: Mark
    unwanted: Mark
    spent_as: frozenset[InteractionMode]
    spare: tuple[Section, ...]


_WISHES = Mark.PREFERENCE | Mark.INSTRUCTION
_RULES = Mark.SAFETY | Mark.CONSTRAINT
_WINDOW_LAST: tuple[Section, ...] = ("retrieved_evidence", "recent_window")
_WINDOW_FIRST: tuple[Section, ...] = ("recent_window", "retrieved_evidence")
_EXPLORED: frozenset[InteractionMode] = frozenset({"EXPLORATION"})

KEEPING: Mapping[InteractionMode, Keeping] = {
    "TASK": Keeping(
        rules=_RULES | _WISHES,
        task_state=Mark.GOAL | Mark.DONE | Mark.PENDING,
        decisions=Mark.DECISION,
        wanted=_RULES | Mark.GOAL | Mark.DONE | Mark.PENDING | Mark.DECISION | Mark.CORRECTION,
        unwanted=Mark.SPECULATION | Mark.OPEN_QUESTION | Mark.COURTESY,
        spent_as=_EXPLORED,
        spare=_WINDOW_LAST,
    ),
    "EXPLORATION": Keeping(
        rules=_RULES | _WISHES,
        task_state=Mark.GOAL,
        decisions=Mark.DECISION | Mark.INSIGHT | Mark.OPEN_QUESTION,
        wanted=Mark.INSIGHT | Mark.DECISION | Mark.OPEN_QUESTION,
        unwanted=Mark.CODE | Mark.TOOL | Mark.ERROR | Mark.COURTESY,
        spent_as=frozenset(),
        spare=_WINDOW_FIRST,
    ),
    "DEBUGGING": Keeping(
        rules=_RULES,
        task_state=Mark.ERROR | Mark.CHANGE | Mark.GOAL,
        decisions=Mark.DECISION | Mark.CHANGE,
        wanted=_RULES | Mark.ERROR | Mark.CHANGE | Mark.CORRECTION,
        unwanted=Mark.DONE | Mark.SPECULATION | Mark.OPEN_QUESTION | Mark.COURTESY,
        spent_as=_EXPLORED,
        spare=_WINDOW_FIRST,
    ),
    "LEARNING": Keeping(
        rules=_RULES | _WISHES | Mark.PRINCIPLE,
        task_state=NO_MARK,
        decisions=Mark.PRINCIPLE | Mark.PATTERN | Mark.EXAMPLE | Mark.INSIGHT,
        wanted=Mark.PRINCIPLE | Mark.EXAMPLE | Mark.PATTERN | Mark.REASON,
        unwanted=Mark.TOOL | Mark.ERROR | Mark.DONE | Mark.PENDING | Mark.CHANGE | Mark.COURTESY,
        spent_as=frozenset(),
        spare=("retrieved_evidence",),
    ),
    "GENERAL": Keeping(
        rules=_RULES | _WISHES,
        task_state=Mark.GOAL | Mark.DONE | Mark.PENDING,
        decisions=Mark.DECISION,
        wanted=NO_MARK,
        unwanted=NO_MARK,
        spent_as=frozenset(),
        spare=_WINDOW_LAST,
    ),
}
"""Seed 002, "What to Keep" and "What to Drop" of each mode."""

ALWAYS_RELEVANT = 3
"""Best hits that stay even where the mode drops their kind: it drops what is not relevant to the request."""

AHEAD = 2.0
"""A wanted hit stands as if its rank were divided by this: the tenth comes with the fifth."""


def in_order(hits: list[tuple[str, Mark, InteractionMode | None]], keeping: Keeping) -> tuple[list[str], list[str]]:
    """Hits by id, in the order in which they are kept, and those that the mode drops; `hits` come best first."""
    ranked: list[tuple[float, int, str]] = []
    dropped: list[str] = []
    for rank, (memory_id, marks, said_as) in enumerate(hits):
        wanted = bool(marks & keeping.wanted)
        unwanted = bool(marks & keeping.unwanted) or said_as in keeping.spent_as
        if unwanted and not wanted and rank >= ALWAYS_RELEVANT:
            dropped.append(memory_id)
        else:
            ranked.append((rank / AHEAD if wanted else float(rank), rank, memory_id))
    return [memory_id for _, _, memory_id in sorted(ranked)], dropped
