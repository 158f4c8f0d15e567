"""Candidates of the sections of a context, by the tables of its interaction mode. Pure.

Candidates are memory ids, most important first. Sticky memories and standing instructions come from the whole scope;
all others from the conversation and the hits for the query, so that a long history does not crowd out current matters.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from modestream_client.contexts import SECTIONS, Section
from modestream_client.vocabulary import InteractionMode

from agents.rules.categories.taxonomy import visible_category
from agents.rules.context.sticky import RULE_ROLES, Invariant, invariants_of, sticky_memories
from agents.rules.context.visible_memories import VisibleSet
from agents.rules.cues.labels import NO_LABELS, SentenceLabel, sentences_with_labels
from agents.rules.cues.mode_taxonomy import ModeTable, ModeTaxonomy
from agents.rules.index.columns import MISSING, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.ranking.ranking import log_odds_of
from agents.rules.text.passages import MAX_UNCUT_CHARS
from schemas.models.vectors import MemoryFilter
from schemas.scopes import PROJECT_FIELD
from schemas.state.categories import Category
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory

NEIGHBOUR_WEIGHT = 0.3
"""Share of the way to a better neighbour's log-odds."""

LENGTH_EXPONENT = 0.25
"""Exponent of the tokens by which a probability is divided; 1 would be value per token, and prefers mere courtesies."""

ENTRY_TOKENS, TOKENS_PER_TERM = 15.0, 1.3
"""Estimated tokens of an entry: around its text, and for each term of it."""


def order_evidence(scores: Mapping[int, float], columns: MemoryColumns) -> list[int]:
    """Return the numbers of the hits, most valuable first; `scores` are probabilities by number, best first."""
    if not scores:
        return []
    numbers = np.fromiter(scores, dtype=np.int64)
    log_odds = {number: log_odds_of(score) for number, score in scores.items()}
    order = columns.order()
    evidence = np.array(list(log_odds.values()))
    # The better log-odds of two neighbours; minus infinity if neither is a hit.
    near = np.array(
        [
            max(log_odds.get(int(order.before[number]), -math.inf), log_odds.get(int(order.after[number]), -math.inf))
            for number in numbers.tolist()
        ]
    )
    raised = evidence + NEIGHBOUR_WEIGHT * np.maximum(near - evidence, 0.0)
    tokens = ENTRY_TOKENS + TOKENS_PER_TERM * columns.columns.lengths[numbers]
    worth = -np.logaddexp(0.0, -raised) - LENGTH_EXPONENT * np.log(tokens)
    ordered: list[int] = numbers[np.argsort(-worth, kind="stable")].tolist()
    return ordered


_EXPLORING = SentenceLabel.SPECULATION | SentenceLabel.OPEN_QUESTION
_PURPOSES: frozenset[InteractionMode] = frozenset({"TASK", "DEBUGGING", "LEARNING"})
"""A turn said for one of these purposes never counts as exploration, even if it says that something is unknown."""

_OF_TEXTS = SentenceLabel.CODE | SentenceLabel.ERROR | SentenceLabel.COURTESY | SentenceLabel.FOREIGN
_OF_TEXTS |= SentenceLabel.NUMBER | SentenceLabel.DATE | SentenceLabel.TIME | SentenceLabel.DURATION
_OF_TEXTS |= SentenceLabel.MONEY | SentenceLabel.NAME | SentenceLabel.LINK
"""Labels of whole texts rather than of their sentences."""

MIN_PREVAILING_SHARE = 0.5
"""Share of a text's characters that sentences of a kind need for the text to be of that kind."""


MIN_DROPPED_CONFIDENCE = 0.85
"""Minimum confidence that a turn was said in a mode for it to be dropped as such. A dropped turn can't answer: of the
classifications from 0.7 on, which decide a budget, one in seven is wrong, of these one in twenty."""


def is_dropped(table: ModeTable, labels: int, interaction: Interaction | None, *, in_window: bool = False) -> bool:
    """Return whether a mode drops memories of this kind; it keeps wanted kinds, and rules of the user.

    `labels` are flags of `SentenceLabel`; `in_window`: among the last turns of the request's conversation.
    """
    # Plain integers: operations on flags take ten times as long.
    if labels & table.keep.value or (labels & table.rules.value and labels & RULE_ROLES.value):
        return False
    if in_window and table.drop_recent:
        return True
    said_in = None if interaction is None else interaction.mode
    if interaction is not None and said_in in table.drop_said_in and interaction.confidence >= MIN_DROPPED_CONFIDENCE:
        return True
    # "Yes, please" in the conversation answers the turn before it.
    spared = SentenceLabel.COURTESY.value if in_window else 0
    if said_in in _PURPOSES:
        spared |= _EXPLORING.value
    return bool(labels & table.drop.value & ~spared)


def prevailing_labels(text: str, labels: int, unwanted: SentenceLabel) -> int:
    """Return the labels of a text without unwanted ones that apply only to a minor part of it.

    A text that is cut into passages has parts of many kinds; only its role is a kind of the whole.
    """
    of_sentences = unwanted & ~_OF_TEXTS & ~SentenceLabel.TOOL
    if len(text) > MAX_UNCUT_CHARS:
        return labels & ~(of_sentences | _OF_TEXTS).value
    if labels & of_sentences.value:
        sentences = sentences_with_labels(text, of_sentences)
        if sum(map(len, sentences)) < MIN_PREVAILING_SHARE * len(text):
            labels &= ~of_sentences.value
    return labels


MAX_RELATED_HITS = 20
"""Best hits that may be in a section of their kind, and whose sticky memories are shown whole."""

MAX_KEPT_AGAINST_MODE = 3
"""Best hits that may be kept even if the mode drops their kind: they answer the request."""

MIN_SHARE_OF_BEST = 0.5
"""Minimum score of such a hit, as a share of the best one's: below it a hit is not an answer next to the best."""

WANTED_RANK_DIVISOR = 2.0
"""Divides the rank of a wanted hit: the tenth moves up to the fifth."""


def raise_wanted(hits: Sequence[tuple[str, SentenceLabel]], wanted: SentenceLabel) -> list[str]:
    """Return the ids of the hits, most important first; `hits` come best first, with their labels."""
    ranked = [
        (rank / WANTED_RANK_DIVISOR if labels & wanted else float(rank), rank, memory_id)
        for rank, (memory_id, labels) in enumerate(hits)
    ]
    return [memory_id for _, _, memory_id in sorted(ranked)]


def best_answers(scores: Mapping[int, float]) -> list[int]:
    """Return the numbers of the hits that are kept against a mode; `scores` by number, best first."""
    best = max(scores.values(), default=0.0)
    return [
        number for number, score in list(scores.items())[:MAX_KEPT_AGAINST_MODE] if score >= MIN_SHARE_OF_BEST * best
    ]


def scale_budgets(table: ModeTable, budget_tokens: int) -> dict[Section, int]:
    """Return the sections' budgets in tokens, in the proportions of the mode; their sum is at most `budget_tokens`."""
    total = sum(table.budgets.values())
    return {section: budget_tokens * table.budgets[section] // total for section in SECTIONS}


def allocate_remaining_tokens(
    budget: Mapping[Section, int], used: Mapping[Section, int], left: int
) -> dict[Section, int]:
    """Return the remaining room of each section, in tokens; the sum is at most `left`.

    If sticky memories exceed their section's budget, all sections shrink in proportion.
    """
    wanted = {section: max(0, budget[section] - used[section]) for section in SECTIONS}
    total = sum(wanted.values())
    return {section: wanted[section] * left // total if total > left else wanted[section] for section in SECTIONS}


MAX_SCOPE_INSTRUCTIONS = 5
"""Latest instructions of the scope. Older ones are candidates only as hits."""

MAX_LABELLED = 100
"""Latest labelled memories of the conversation per section."""

MAX_CAPSULES = 20
"""Latest distilled memories, in addition to those among the hits."""


@dataclass(frozen=True, slots=True)
class SectionCandidates:
    """Candidates by section, of all kinds; `sticky` precedes all.

    `drops` tells whether the context's interaction mode drops a candidate; `kept_against` are the hits that it would
    drop if they did not answer the request, best first.
    """

    sticky: Sequence[tuple[Invariant, str]]
    rules: Sequence[str]
    task_state: Sequence[str]
    evidence: Sequence[str]
    decisions: Sequence[str]
    capsules: Sequence[str]
    drops: Callable[[Memory], bool]
    kept_against: Sequence[str]


def collect_section_candidates(
    taxonomy: ModeTaxonomy,
    mode: InteractionMode,
    visible: VisibleSet,
    columns: MemoryColumns,
    hits: Mapping[str, float],
    window: Iterable[str],
    pins: Iterable[str],
    read: Callable[[str], Memory | None],
) -> SectionCandidates:
    """Return the candidates for this mode.

    `hits` are scores by id, best first; `window` the last turns of the conversation; `read` reads a memory by its id.
    """
    table, id_of = taxonomy.modes[mode], columns.id_of
    scores_by_number = {columns.number_of[hit]: score for hit, score in hits.items() if hit in columns.number_of}
    scores = {number: score for number, score in scores_by_number.items() if visible.admitted[number]}
    related = list(scores)[:MAX_RELATED_HITS]

    def labelled_ids(labels: SentenceLabel, by: SentenceLabel = NO_LABELS, *, first_found: bool = True) -> list[str]:
        mask = visible.labelled(labels, by)
        latest = visible.newest_first(mask & visible.in_conversation)[:MAX_LABELLED]
        admitted = [number for number in related if mask[number]]
        return _ids(columns, [*admitted, *latest] if first_found else [*latest, *admitted])

    instructions = visible.labelled(table.rules & SentenceLabel.INSTRUCTION, RULE_ROLES)
    latest_instructions = visible.newest_first(instructions)[:MAX_SCOPE_INSTRUCTIONS]
    distilled: Mask = visible.admitted & (columns.of_kind(lambda kind: float(kind.type == "semantic")) > 0)
    latest_distilled = visible.newest_first(distilled)[:MAX_CAPSULES]
    sticky = [
        (invariant, id_of[number]) for invariant, number in sticky_memories(visible, invariants_of(taxonomy.sticky))
    ]
    labels, in_window = visible.columns.labels, frozenset(window)
    exempt = {*pins, *(memory_id for _, memory_id in sticky)}

    def drops(memory: Memory) -> bool:
        memory_id = memory.memory_id
        number = columns.number_of.get(memory_id, MISSING)
        # Memories stored since, and summaries of categories, have no labels.
        if not table.drops_anything or memory_id in exempt or not 0 <= number < len(labels):
            return False
        interaction, is_recent = interaction_of(memory, read), memory_id in in_window
        if not is_dropped(table, int(labels[number]), interaction, in_window=is_recent):
            return False
        prevailing = prevailing_labels(memory.text, int(labels[number]), table.drop)
        return is_dropped(table, prevailing, interaction, in_window=is_recent)

    answers = (memory for number in best_answers(scores) if (memory := read(id_of[number])) is not None)
    kept_against = [answer.memory_id for answer in answers if drops(answer)]
    exempt.update(kept_against)
    ordered = [(id_of[number], SentenceLabel(int(labels[number]))) for number in order_evidence(scores, columns)]
    return SectionCandidates(
        sticky=sticky,
        rules=list(dict.fromkeys([*labelled_ids(table.rules, RULE_ROLES), *_ids(columns, latest_instructions)])),
        task_state=labelled_ids(table.task_state, first_found=False),
        evidence=raise_wanted(ordered, table.keep),
        decisions=labelled_ids(table.relevant_decisions, SentenceLabel.USER | SentenceLabel.ASSISTANT),
        capsules=_ids(columns, [*filter(distilled.__getitem__, scores), *latest_distilled]),
        drops=drops,
        kept_against=kept_against,
    )


def interaction_of(memory: Memory, read: Callable[[str], Memory | None]) -> Interaction | None:
    """Return the interaction mode of a turn; for a distilled memory, its turns' common mode, if they agree.

    `read` reads a memory by its id.
    """
    if memory.reading.interaction is not None or memory.origin != "distilled":
        return memory.reading.interaction
    sources = [read(memory_id) for memory_id in {quote.memory_id for quote in memory.evidence if quote.memory_id}]
    readings = [source.reading.interaction for source in sources if source is not None]
    known = [interaction for interaction in readings if interaction is not None]
    if not known or len(known) < len(readings) or len({interaction.mode for interaction in known}) > 1:
        return None
    return min(known, key=lambda interaction: interaction.confidence)


def _ids(columns: MemoryColumns, numbers: Iterable[int]) -> list[str]:
    return [columns.id_of[number] for number in dict.fromkeys(numbers)]


CATEGORY_ID_PREFIX = "category:"
"""Prefix of a summary's id; ids of memories are UUIDs and can't collide with it."""


def capsule_of(
    scope: Mapping[str, str], category: Category, where: MemoryFilter, read: Callable[[str], Memory | None]
) -> Memory | None:
    """Return the current summary, without a speaker, at the time of its latest source; None without summary or source.

    `read` reads a memory by its id.
    """
    visible = visible_category(category, read)
    sources = [memory for memory in map(read, visible.rests_on) if memory is not None]
    if not visible.summary or not sources:
        return None
    latest = max(sources, key=lambda memory: (memory.occurred_ms, memory.memory_id))
    without_turn = dict.fromkeys(("turn_id", "conversation_id", "role", "speaker"))
    # The id contains the project if the filter selects several.
    one_project = where.scope.get(PROJECT_FIELD) is not None and len(where.scope[PROJECT_FIELD] or ()) == 1
    name = category.name if one_project else f"{scope[PROJECT_FIELD]}/{category.name}"
    fields = {
        "memory_id": CATEGORY_ID_PREFIX + name,
        "scope": dict(scope),
        "type": "semantic",
        "origin": "distilled",
        "text": f"{category.name}: {visible.summary}",
        "evidence": (),
        "resources": (),
    }
    return latest.model_copy(update=without_turn | fields)
