"""What is known of every memory of one boundary, as columns: which a read may see, who stands beside whom.

A memory has a **number**, its place in every column; where no memory has a number, there is a hole.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.columns import MISSING, ColumnArrays, FloatArray, Mask
from agents.rules.index.traits import MemoryKind, ScopeItems, Trait
from agents.rules.index.turn_order import TurnOrder
from agents.rules.text.languages import ENGLISH_INDEX, LANGUAGES, UNKNOWN_LANGUAGE
from schemas.vectors import MemoryFilter

MIN_LANGUAGE_SHARE = 0.1
"""The share of a boundary's memories from which a language counts as spoken there: below are quotes and mistakes."""

_Key = TypeVar("_Key", bound=Hashable)


class MemoryRow(NamedTuple):
    """One memory in the columns. `space` is the digest of the vector space that holds its vector, None for none.

    `language` is a place in `agents.rules.text.languages.LANGUAGES`, `marks` are flags of `agents.rules.cues.labels.SentenceLabel`.
    """

    number: int
    memory_id: str
    trait: int
    occurred_ms: int
    source: int
    length: int
    importance: float
    superseded: bool
    space: str | None
    language: int = UNKNOWN_LANGUAGE
    marks: int = 0


class MemoryColumns:
    """The memories of one boundary. Changed by `write` alone; what it gives out must not be changed."""

    def __init__(self, rows: Sequence[MemoryRow] = (), traits: Mapping[int, Trait] | None = None) -> None:
        self.columns = ColumnArrays.empty(0)
        self.number_of: dict[str, int] = {}
        self.id_of: dict[int, str] = {}
        self.changes = 0
        """How often memories were written: what was made from the columns may be kept while this stays the same."""
        self.kinds: dict[MemoryKind, int] = {}
        self.speakers: dict[str, int] = {}
        self._talks: dict[tuple[ScopeItems, str], int] = {}
        self._spaces: dict[str, int] = {}
        self._traits: dict[int, tuple[int, int, int]] = {}
        self._order: TurnOrder | None = None
        self.write(rows, traits or {})

    @property
    def documents(self) -> int:
        """How many memories there are."""
        return len(self.number_of)

    def has_trait(self, trait: int) -> bool:
        """Whether this trait was given to `write` before."""
        return trait in self._traits

    def write(self, rows: Sequence[MemoryRow], traits: Mapping[int, Trait]) -> None:
        """Add or replace memories; `traits` holds those of the rows' traits that are not known yet."""
        self._traits.update((key, self._placed(trait)) for key, trait in traits.items())
        if not rows:
            return
        self.changes += 1
        stood = [self._standing(row.number) for row in rows]
        self._write_columns(rows)
        self.number_of.update((row.memory_id, row.number) for row in rows)
        self.id_of.update((row.number, row.memory_id) for row in rows)
        self._follow([row.number for row in rows], stood)

    def _write_columns(self, rows: Sequence[MemoryRow]) -> None:
        numbers, _, keys, occurred, source, lengths, importance, superseded, spaces, languages, marks = zip(
            *rows, strict=True
        )
        if max(numbers) >= len(self.columns.live):
            self.columns = self.columns.extended_to(max(numbers) * 9 // 8 + 1)
        columns, at = self.columns, np.array(numbers)
        columns.live[at] = True
        columns.superseded[at] = superseded
        columns.kinds[at], columns.conversations[at], columns.speakers[at] = np.array(
            [self._traits[key] for key in keys]
        ).T
        columns.spaces[at] = [MISSING if space is None else _place(self._spaces, space) for space in spaces]
        columns.occurred_ms[at] = occurred
        columns.source[at] = source
        columns.lengths[at] = lengths
        columns.importance[at] = importance
        columns.languages[at] = languages
        columns.labels[at] = marks

    def _standing(self, number: int) -> tuple[int, ...] | None:
        """What decides where a memory stands in its conversation; None where there is no memory."""
        columns = self.columns
        if self._order is None or number >= len(columns.live) or not columns.live[number]:
            return None
        return tuple(
            int(column[number])
            for column in (columns.conversations, columns.occurred_ms, columns.source, columns.superseded)
        )

    def _follow(self, numbers: Sequence[int], stood: Sequence[tuple[int, ...] | None]) -> None:
        """Keep the order of turns as it is, add those at the end, or find it anew when it is asked for."""
        for number, before in zip(numbers, stood, strict=True):
            if self._order is None or before == self._standing(number):
                continue
            if before is not None or not self._order.append(number, self.columns):
                self._order = None

    def _placed(self, trait: Trait) -> tuple[int, int, int]:
        talk = MISSING if trait.conversation is None else _place(self._talks, (trait.kind.scope, trait.conversation))
        speaker = MISSING if trait.speaker is None else _place(self.speakers, trait.speaker)
        return _place(self.kinds, trait.kind), talk, speaker

    def admitted(self, where: MemoryFilter, *, include_superseded: bool = False) -> Mask:
        """Which memories a read may see."""
        columns = self.columns
        mask: Mask = columns.live & self.of_kind(lambda kind: kind.admitted(where)).astype(np.bool_)
        if not include_superseded:
            mask &= ~columns.superseded
        if where.since_ms is not None:
            mask &= columns.occurred_ms >= where.since_ms
        if where.until_ms is not None:
            mask &= columns.occurred_ms < where.until_ms
        return mask

    def embedded(self, space: str) -> Mask:
        """Which memories have their vector in this space."""
        mask: Mask = self.columns.live & (self.columns.spaces == self._spaces.get(space, MISSING - 1))
        return mask

    def foreign(self) -> Mask:
        """Which memories are in a language that an English model can't read."""
        mask: Mask = (self.columns.labels & SentenceLabel.FOREIGN.value) != 0
        return mask

    def of_kind(self, value: Callable[[MemoryKind], float]) -> FloatArray:
        """A value for each memory that depends on its kind alone."""
        values = np.array([*map(value, self.kinds), 0.0])
        spread: FloatArray = values[self.columns.kinds]
        return spread

    def spoken_by(self, speakers: frozenset[str]) -> Mask:
        """Which memories are what one of these people said."""
        places = [place for speaker, place in self.speakers.items() if speaker in speakers]
        return self.columns.live & np.isin(self.columns.speakers, places)

    def latest(self, where: MemoryFilter, conversation: str, most: int) -> list[str]:
        """The ids of the last turns of a conversation that a read may see, `most` of them or fewer, oldest first.

        Where the read admits several scopes that have a conversation of this name, it is read as one.
        """
        scopes = {kind.scope for kind in self.kinds}
        places = [self._talks[scope, conversation] for scope in scopes if (scope, conversation) in self._talks]
        turns = np.flatnonzero(np.isin(self.columns.conversations, places) & self.admitted(where))
        order = np.lexsort((self.columns.source[turns], self.columns.occurred_ms[turns]))
        newest = turns[order[max(0, len(order) - most) :]]
        return [self.id_of[number] for number in newest.tolist()]

    def order(self) -> TurnOrder:
        """Who stands beside whom in every conversation, and where in it."""
        if self._order is None:
            self._order = TurnOrder.of(self.columns)
        return self._order

    def languages(self) -> list[int]:
        """The places of the languages that are spoken here, the most common first; English where none is known."""
        counts = np.bincount(self.columns.languages[self.columns.live], minlength=len(LANGUAGES))
        counts[UNKNOWN_LANGUAGE] = 0
        common = np.flatnonzero(counts > MIN_LANGUAGE_SHARE * counts.sum())
        return sorted(common.tolist(), key=lambda place: -counts[place]) or [ENGLISH_INDEX]


def _place(places: dict[_Key, int], key: _Key) -> int:
    """The place of a key, given to it when it is new."""
    return places.setdefault(key, len(places))
