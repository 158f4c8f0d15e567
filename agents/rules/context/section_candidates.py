"""What each section of a context is offered, the most important first, as memory ids. Pure.

What must not be dropped comes from the whole scope; standing wishes too. All else comes from the conversation and from
what was found for the query, so that a long past does not crowd out what matters now.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agents.rules.context.retention import RETENTION_POLICIES, apply_retention
from agents.rules.context.sticky import RULE_ROLES, Invariant, sticky_memories
from agents.rules.context.visible_memories import VisibleSet
from agents.rules.cues.labels import NO_LABELS, SentenceLabel
from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns
from schemas.interaction import InteractionMode

MAX_SCOPE_INSTRUCTIONS = 5
"""Instructions from other conversations: the latest ones. Older ones are found where the query is about them."""

MAX_LABELLED = 100
"""Marked memories of a conversation that a section is offered, and hits that are asked for."""

MAX_CAPSULES = 20
"""Distilled memories that are offered where the search does not find them: the latest."""


@dataclass(frozen=True, slots=True)
class SectionCandidates:
    """`sticky_memories` comes first of all, in its order. `excluded` are hits that the interaction mode drops."""

    sticky: Sequence[tuple[Invariant, str]]
    rules: Sequence[str]
    task_state: Sequence[str]
    evidence: Sequence[str]
    decisions: Sequence[str]
    capsules: Sequence[str]
    excluded: Sequence[str]


def collect_section_candidates(
    mode: InteractionMode,
    sight: VisibleSet,
    roster: MemoryColumns,
    hits: Sequence[str],
    said_as: Mapping[str, InteractionMode],
) -> SectionCandidates:
    """What a context of this mode is made of; `hits` come best first, `said_as` is what each of them was for."""
    keeping = RETENTION_POLICIES[mode]
    numbers = [roster.number_of[hit] for hit in hits if hit in roster.number_of]
    numbers = [number for number in numbers if sight.admitted[number]]

    def marked(marks: SentenceLabel, by: SentenceLabel = NO_LABELS, *, first_found: bool = True) -> list[str]:
        mask = sight.labelled(marks, by)
        here = sight.newest_first(mask & sight.in_conversation)[:MAX_LABELLED]
        found = [number for number in numbers if mask[number]]
        return _ids(roster, [*found, *here] if first_found else [*here, *found])

    ranked = [
        (roster.id_of[one], SentenceLabel(int(sight.columns.labels[one])), said_as.get(roster.id_of[one]))
        for one in numbers
    ]
    evidence, aside = apply_retention(ranked, keeping)
    wishes = sight.newest_first(sight.labelled(keeping.rules & SentenceLabel.INSTRUCTION, RULE_ROLES))[
        :MAX_SCOPE_INSTRUCTIONS
    ]
    return SectionCandidates(
        sticky=[(invariant, roster.id_of[number]) for invariant, number in sticky_memories(sight)],
        rules=_each(marked(keeping.rules, RULE_ROLES), _ids(roster, wishes)),
        task_state=marked(keeping.task_state, first_found=False),
        evidence=evidence,
        decisions=marked(keeping.decisions, SentenceLabel.USER | SentenceLabel.ASSISTANT),
        capsules=_ids(roster, _distilled(sight, roster, numbers)),
        excluded=aside,
    )


def _distilled(sight: VisibleSet, roster: MemoryColumns, found: Iterable[int]) -> list[int]:
    """Memories that were distilled from several turns: those that were found, then the latest."""
    mask: Mask = sight.admitted & (roster.of_kind(lambda kind: float(kind.type == "semantic")) > 0)
    return [*(number for number in found if mask[number]), *sight.newest_first(mask)[:MAX_CAPSULES]]


def _ids(roster: MemoryColumns, numbers: Iterable[int]) -> list[str]:
    return [roster.id_of[number] for number in dict.fromkeys(numbers)]


def _each(*lists: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(one for listed in lists for one in listed))
