"""Budget the sections of a context, and collect their candidates: memory ids, most important first. Pure.

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
from schemas.messages.assemble import SECTIONS, Section
from schemas.state.interaction import InteractionMode

SECTION_BUDGETS: Mapping[InteractionMode, tuple[int, ...]] = {
    "TASK": (10000, 5000, 2000, 28000, 4000, 4000),
    "EXPLORATION": (3000, 1000, 15000, 35000, 6000, 2000),
    "DEBUGGING": (5000, 4000, 12000, 25000, 3000, 0),
    "LEARNING": (8000, 0, 2000, 40000, 8000, 2000),
    "GENERAL": (6000, 3000, 8000, 28000, 4000, 4000),
}
"""Tokens of each section in the order of `SECTIONS`; only the proportions matter."""


def scale_budgets(mode: InteractionMode, budget_tokens: int) -> dict[Section, int]:
    """Return the sections' budgets in tokens, in the proportions of the mode; their sum is at most `budget_tokens`."""
    shares = SECTION_BUDGETS[mode]
    total = sum(shares)
    return {section: budget_tokens * share // total for section, share in zip(SECTIONS, shares, strict=True)}


def allocate_remaining_tokens(
    budget: Mapping[Section, int], used: Mapping[Section, int], left: int
) -> dict[Section, int]:
    """Return what each section may still take, in tokens; the sum is at most `left`.

    If sticky memories exceed their section's budget, all sections shrink in proportion.
    """
    wanted = {section: max(0, budget[section] - used[section]) for section in SECTIONS}
    total = sum(wanted.values())
    return {section: wanted[section] * left // total if total > left else wanted[section] for section in SECTIONS}


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
