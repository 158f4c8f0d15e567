"""Revise the labels of turns: without rules that no longer hold, with rules that a language model found.

A rule no longer holds if its item was contradicted, its own date has passed, or a later statement takes it back; an
error that a later statement reports as fixed is none. Applying awaits nothing; the texts are read before, with pauses.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from agents.context.sizing import Pauses
from agents.ports.indexes import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.context.sticky import REPORTER_ROLES, RULE_ROLES, STICKY_LABELS
from agents.rules.context.visible_memories import (
    CURRENT_STATE_LABELS,
    VisibleSet,
    expired_spans,
    is_contradicted,
    labels_without,
    outdated_spans,
    taken_back_spans,
)
from agents.rules.cues.labels import LABEL_BY_ITEM_KIND, NO_LABELS, SentenceLabel, sentences_with_labels
from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.text.overlap import content_stems
from agents.rules.text.passages import Span
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import Memory, item_index_name


class RuleTexts:
    """Find the sentences of turns that no longer hold `today`."""

    def __init__(self, memories: Memories, today: date) -> None:
        self._memories = memories
        self._today = today
        self._turns: dict[str, Memory | None] = {}
        self._expired = cache(expired_spans)
        self._taken_back = cache(taken_back_spans)
        self._stems = cache(content_stems)
        self._labels: dict[tuple[str, tuple[tuple[int, int], ...]], SentenceLabel] = {}

    def turn(self, memory_id: str) -> Memory | None:
        """Return a turn without its resources, None if there is none; as it was when it was first asked for."""
        if memory_id not in self._turns:
            memory = self._memories.get(memory_id)
            self._turns[memory_id] = memory and memory.model_copy(update={"resources": ()})
        return self._turns[memory_id]

    def expired(self, turn: Memory) -> list[Span]:
        """Return the sentences that are past their own date."""
        return self._expired(turn.text, turn.occurred_at, self._today)

    def taken_back(
        self, turn: Memory, labels: SentenceLabel, statements: Iterable[str], *, by_number: bool
    ) -> list[Span]:
        return self._taken_back(turn.text, labels, tuple(map(self._stems, statements)), by_number=by_number)

    def labels(self, turn: Memory, without: Iterable[tuple[int, int]] = ()) -> SentenceLabel:
        key = turn.memory_id, tuple(without)
        if key not in self._labels:
            self._labels[key] = labels_without(turn, key[1])
        return self._labels[key]

    def lost_labels(self, turn: Memory, spans: Sequence[Span]) -> SentenceLabel:
        return self.labels(turn) & ~self.labels(turn, spans) if spans else NO_LABELS


MAX_OUTDATED_ITEMS = 200
"""Maximum outdated items read of a scope, latest first; each takes about 50 µs."""

MAX_MODEL_RULE_ITEMS = 200
"""The same for items that a model may have found."""

MAX_REVISED_TURNS = 200
"""The same for turns with a rule that has a date, or that a later statement may take back."""

MAX_REVISED_CHARS = 512 * 1024
"""Characters of them that are read, of the latest ones; a rule of an older one holds. Some 0.5 s at most."""

MAX_TAKING_BACK = 50
"""Latest turns that take something back, and sentences of them: each is compared with each sentence of a rule."""

RULE_LABELS = (
    SentenceLabel.SAFETY | SentenceLabel.CONSTRAINT | SentenceLabel.STANDING_PREFERENCE | SentenceLabel.INSTRUCTION
)
EXPIRING_LABELS = RULE_LABELS | SentenceLabel.ERROR
"""Labels that a sentence loses when it no longer holds."""


class TakingBack(NamedTuple):
    """Labels and roles of statements that revoke others, and the labels of the statements they revoke.

    `by_number`: only if they change a number.
    """

    label: SentenceLabel
    roles: SentenceLabel
    taken: SentenceLabel
    by_number: bool = False


TAKING_BACK = (
    TakingBack(SentenceLabel.WITHDRAWAL, RULE_ROLES, RULE_LABELS),
    TakingBack(SentenceLabel.CORRECTION, SentenceLabel.USER, RULE_LABELS, by_number=True),
    TakingBack(SentenceLabel.RESOLVED, REPORTER_ROLES, SentenceLabel.ERROR),
)


class Statement(NamedTuple):
    """The sentences of a turn that take something back; turns of one request have distinct time ranks."""

    number: int
    time_rank: int
    scope: Mapping[str, str]
    sentences: Sequence[str]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RevisedRules:
    """Finds turns with rules that no longer hold, and turns in which a model found a rule.

    `asks_model`: a language model reads the turns.
    """

    words: LexicalIndex
    memories: Memories
    _: KW_ONLY
    asks_model: bool = False

    def apply(
        self, visible: VisibleSet, memory_columns: MemoryColumns, where: MemoryFilter, texts: RuleTexts
    ) -> VisibleSet:
        """Return the visible set with the labels that still hold."""
        revised = dict(self._remaining_labels(memory_columns, where, texts))
        for number, label in self._model_labels(memory_columns, where, texts) if self.asks_model else ():
            revised[number] = revised.get(number, _label_at(visible, number)) | label
        for number, lost in self._lost_labels(visible, memory_columns, texts):
            if lost:
                revised[number] = revised.get(number, _label_at(visible, number)) & ~lost
        return visible.with_labels(revised)

    async def read(
        self, visible: VisibleSet, memory_columns: MemoryColumns, where: MemoryFilter, texts: RuleTexts, pauses: Pauses
    ) -> None:
        """Read the texts that `apply` reads, with pauses."""
        readings = (
            self._remaining_labels(memory_columns, where, texts),
            self._model_labels(memory_columns, where, texts) if self.asks_model else (),
            self._lost_labels(visible, memory_columns, texts),
        )
        for _ in chain(*readings):
            await pauses.pause_if_due()

    def _remaining_labels(
        self, memory_columns: MemoryColumns, where: MemoryFilter, texts: RuleTexts
    ) -> Iterator[tuple[int, SentenceLabel]]:
        """Yield the turns with outdated items, by number, with the labels of their other sentences."""
        items_by_turn: defaultdict[str, list[Memory]] = defaultdict(list)
        # The latest visible items about current state that no longer hold.
        indexed = self.words.memory_columns(item_index_name(where.boundary))
        mask = indexed.superseded(where) & ((indexed.columns.labels & CURRENT_STATE_LABELS.value) != 0)
        for item in filter(is_contradicted, self._latest(mask, where, MAX_OUTDATED_ITEMS)):
            for memory_id in {quote.memory_id for quote in item.evidence if quote.memory_id}:
                items_by_turn[memory_id].append(item)
        chars = 0
        for memory_id, items in items_by_turn.items():
            number, turn = memory_columns.number_of.get(memory_id), texts.turn(memory_id)
            chars += len(turn.text) if turn else 0
            if chars > MAX_REVISED_CHARS:
                return
            if number is not None and turn is not None:
                yield number, texts.labels(turn, outdated_spans(memory_id, items))

    def _lost_labels(
        self, visible: VisibleSet, memory_columns: MemoryColumns, texts: RuleTexts
    ) -> Iterator[tuple[int, SentenceLabel]]:
        """Yield the turns that may have expired or revoked sentences, by number.

        Each comes with the labels that it loses, possibly none.
        """
        dated = visible.labelled(EXPIRING_LABELS, of_all_modes=True)
        dated &= visible.labelled(SentenceLabel.DATE, of_all_modes=True)
        for number, turn in _latest_turns(visible, dated, memory_columns, texts, MAX_REVISED_TURNS):
            yield number, texts.lost_labels(turn, texts.expired(turn)) & EXPIRING_LABELS
        for taking_back in TAKING_BACK:
            statements = []
            for statement in _statements(visible, memory_columns, taking_back, texts):
                statements.append(statement)
                yield statement.number, NO_LABELS
            if statements:
                yield from self._taken_back(visible, memory_columns, taking_back, statements, texts)

    def _taken_back(
        self,
        visible: VisibleSet,
        memory_columns: MemoryColumns,
        taking_back: TakingBack,
        statements: Sequence[Statement],
        texts: RuleTexts,
    ) -> Iterator[tuple[int, SentenceLabel]]:
        """Yield the turns that a later statement in the same scope may take back, with the labels that they lose."""
        rules = visible.labelled(taking_back.taken, RULE_ROLES | REPORTER_ROLES, of_all_modes=True)
        for number, turn in _latest_turns(visible, rules, memory_columns, texts, MAX_REVISED_TURNS):
            said = int(visible.time_rank[number])
            in_scope = (statement for statement in statements if statement.scope == turn.scope)
            later = [text for statement in in_scope if statement.time_rank > said for text in statement.sentences]
            spans = texts.taken_back(turn, taking_back.taken, later, by_number=taking_back.by_number) if later else []
            yield number, texts.lost_labels(turn, spans) & EXPIRING_LABELS

    def _model_labels(
        self, memory_columns: MemoryColumns, where: MemoryFilter, texts: RuleTexts
    ) -> Iterator[tuple[int, SentenceLabel]]:
        """Yield the turns that a model has read, by number, with the labels of their items' kinds."""
        indexed = self.words.memory_columns(item_index_name(where.boundary))
        mask = ~indexed.superseded(where) & ((indexed.columns.labels & STICKY_LABELS.value) != 0)
        for item in self._latest(mask, where, MAX_MODEL_RULE_ITEMS):
            label = LABEL_BY_ITEM_KIND.get(item.item.kind if item.item else None)
            if label is None:
                continue
            # A rule in a document makes no rule of the turn that brings it.
            for memory_id in {quote.memory_id or "" for quote in item.evidence if quote.resource is None}:
                number, turn = memory_columns.number_of.get(memory_id), texts.turn(memory_id)
                if number is not None and turn is not None and turn.reading.status == "model":
                    yield number, label

    def _latest(self, mask: Mask, where: MemoryFilter, most: int) -> list[Memory]:
        if not mask.any():
            return []
        memory_columns = self.words.memory_columns(item_index_name(where.boundary))
        numbers = np.flatnonzero(mask & memory_columns.admitted(where, include_superseded=True))
        latest = numbers[np.argsort(-memory_columns.columns.occurred_ms[numbers], kind="stable")[:most]]
        memories = (self.memories.get(memory_columns.id_of[number]) for number in latest.tolist())
        return [memory for memory in memories if memory is not None]


def _statements(
    visible: VisibleSet, memory_columns: MemoryColumns, taking_back: TakingBack, texts: RuleTexts
) -> Iterator[Statement]:
    mask = visible.labelled(taking_back.label, taking_back.roles, of_all_modes=True)
    left = MAX_TAKING_BACK
    for number, turn in _latest_turns(visible, mask, memory_columns, texts, MAX_TAKING_BACK):
        sentences = sentences_with_labels(turn.text, taking_back.label)[:left]
        left -= len(sentences)
        yield Statement(number, int(visible.time_rank[number]), turn.scope, sentences)


def _latest_turns(
    visible: VisibleSet, mask: Mask, memory_columns: MemoryColumns, texts: RuleTexts, count: int
) -> Iterator[tuple[int, Memory]]:
    """Yield the latest of these turns by number, at most `count` and `MAX_REVISED_CHARS` of their texts."""
    chars = 0
    for number in visible.newest_first(mask)[:count]:
        turn = texts.turn(memory_columns.id_of.get(number, ""))
        chars += len(turn.text) if turn else 0
        if chars > MAX_REVISED_CHARS:
            return
        if turn is not None:
            yield number, turn


def _label_at(visible: VisibleSet, number: int) -> SentenceLabel:
    return SentenceLabel(int(visible.columns.labels[number]))
