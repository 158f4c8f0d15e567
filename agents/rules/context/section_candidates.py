"""Collect the candidates for each section of a context: memory ids, most important first. Pure.

Sticky memories and standing instructions come from the whole scope. All others come from the conversation and from the
hits for the query, so that a long history does not crowd out current matters.
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
"""Latest instructions of the scope. Older ones are candidates only as hits."""

MAX_LABELLED = 100
"""Latest labelled memories of the conversation per section, and number of hits to request."""

MAX_CAPSULES = 20
"""Latest distilled memories, in addition to those among the hits."""


@dataclass(frozen=True, slots=True)
class SectionCandidates:
    """Candidates by section; `sticky` precedes all, `excluded` are hits that the interaction mode drops."""

    sticky: Sequence[tuple[Invariant, str]]
    rules: Sequence[str]
    task_state: Sequence[str]
    evidence: Sequence[str]
    decisions: Sequence[str]
    capsules: Sequence[str]
    excluded: Sequence[str]


def collect_section_candidates(
    mode: InteractionMode,
    visible: VisibleSet,
    memory_columns: MemoryColumns,
    hits: Sequence[str],
    interaction_modes: Mapping[str, InteractionMode],
) -> SectionCandidates:
    """Return the candidates for this mode; `hits` come best first, `interaction_modes` are those of the hits by id."""
    policy, id_of = RETENTION_POLICIES[mode], memory_columns.id_of
    numbers = [memory_columns.number_of[hit] for hit in hits if hit in memory_columns.number_of]
    numbers = [number for number in numbers if visible.admitted[number]]

    def labelled_ids(labels: SentenceLabel, by: SentenceLabel = NO_LABELS, *, first_found: bool = True) -> list[str]:
        mask = visible.labelled(labels, by)
        latest = visible.newest_first(mask & visible.in_conversation)[:MAX_LABELLED]
        found = [number for number in numbers if mask[number]]
        return _ids(memory_columns, [*found, *latest] if first_found else [*latest, *found])

    ranked = [
        (id_of[one], SentenceLabel(int(visible.columns.labels[one])), interaction_modes.get(id_of[one]))
        for one in numbers
    ]
    evidence, excluded = apply_retention(ranked, policy)
    instructions = visible.newest_first(visible.labelled(policy.rules & SentenceLabel.INSTRUCTION, RULE_ROLES))
    return SectionCandidates(
        sticky=[(invariant, id_of[number]) for invariant, number in sticky_memories(visible)],
        rules=_unique(
            labelled_ids(policy.rules, RULE_ROLES), _ids(memory_columns, instructions[:MAX_SCOPE_INSTRUCTIONS])
        ),
        task_state=labelled_ids(policy.task_state, first_found=False),
        evidence=evidence,
        decisions=labelled_ids(policy.decisions, SentenceLabel.USER | SentenceLabel.ASSISTANT),
        capsules=_ids(memory_columns, _distilled(visible, memory_columns, numbers)),
        excluded=excluded,
    )


def _distilled(visible: VisibleSet, memory_columns: MemoryColumns, found: Iterable[int]) -> list[int]:
    """Return distilled memories: those among the hits, then the latest."""
    mask: Mask = visible.admitted & (memory_columns.of_kind(lambda kind: float(kind.type == "semantic")) > 0)
    return [*(number for number in found if mask[number]), *visible.newest_first(mask)[:MAX_CAPSULES]]


def _ids(memory_columns: MemoryColumns, numbers: Iterable[int]) -> list[str]:
    return [memory_columns.id_of[number] for number in dict.fromkeys(numbers)]


def _unique(*lists: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(one for listed in lists for one in listed))
