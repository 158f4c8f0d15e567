"""What is known of every memory of one boundary, as columns: which a read may see, who stands beside whom.

A memory has a **number**, its place in every column; where no memory has a number, there is a hole.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from agents.rules.columns import Columns, Floats, Mask, Numbers
from agents.rules.traits import Kind, ScopeItems, Trait
from schemas.vectors import Where

NOBODY = -1
"""In place of a number: there is no such memory, conversation, speaker or vector space."""

_Key = TypeVar("_Key", bound=Hashable)


class Row(NamedTuple):
    """One memory in the columns. `space` is the digest of the vector space that holds its vector, None for none."""

    number: int
    memory_id: str
    trait: int
    occurred_ms: int
    source: int
    length: int
    importance: float
    superseded: bool
    space: str | None


class Roster:
    """The memories of one boundary. Changed by `write` alone; what it gives out must not be changed."""

    def __init__(self, rows: Sequence[Row] = (), traits: Mapping[int, Trait] | None = None) -> None:
        self.columns = Columns.holes(0)
        self.number_of: dict[str, int] = {}
        self.id_of: dict[int, str] = {}
        self.kinds: dict[Kind, int] = {}
        self.speakers: dict[str, int] = {}
        self._talks: dict[tuple[ScopeItems, str], int] = {}
        self._spaces: dict[str, int] = {}
        self._traits: dict[int, tuple[int, int, int]] = {}
        self._beside: tuple[Numbers, Numbers] | None = None
        self.write(rows, traits or {})

    @property
    def documents(self) -> int:
        """How many memories there are."""
        return len(self.number_of)

    def knows(self, trait: int) -> bool:
        """Whether this trait was given to `write` before."""
        return trait in self._traits

    def write(self, rows: Sequence[Row], traits: Mapping[int, Trait]) -> None:
        """Add or replace memories; `traits` holds those of the rows' traits that are not known yet."""
        self._traits.update((key, self._placed(trait)) for key, trait in traits.items())
        self._beside = None
        if not rows:
            return
        numbers, memory_ids, keys, occurred, source, lengths, importance, superseded, spaces = zip(*rows, strict=True)
        if max(numbers) >= len(self.columns.live):
            self.columns = self.columns.longer(max(numbers) * 9 // 8 + 1)
        columns, at = self.columns, np.array(numbers)
        columns.live[at] = True
        columns.superseded[at] = superseded
        columns.kinds[at], columns.talks[at], columns.speakers[at] = np.array([self._traits[key] for key in keys]).T
        columns.spaces[at] = [NOBODY if space is None else _place(self._spaces, space) for space in spaces]
        columns.occurred_ms[at] = occurred
        columns.source[at] = source
        columns.lengths[at] = lengths
        columns.importance[at] = importance
        self.number_of.update(zip(memory_ids, numbers, strict=True))
        self.id_of.update(zip(numbers, memory_ids, strict=True))

    def _placed(self, trait: Trait) -> tuple[int, int, int]:
        talk = NOBODY if trait.talk is None else _place(self._talks, (trait.kind.scope, trait.talk))
        speaker = NOBODY if trait.speaker is None else _place(self.speakers, trait.speaker)
        return _place(self.kinds, trait.kind), talk, speaker

    def admitted(self, where: Where, *, include_superseded: bool = False) -> Mask:
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
        mask: Mask = self.columns.live & (self.columns.spaces == self._spaces.get(space, NOBODY - 1))
        return mask

    def of_kind(self, value: Callable[[Kind], float]) -> Floats:
        """A value for each memory that depends on its kind alone."""
        values = np.array([*map(value, self.kinds), 0.0])
        spread: Floats = values[self.columns.kinds]
        return spread

    def spoken_by(self, speakers: frozenset[str]) -> Mask:
        """Which memories are what one of these people said."""
        places = [place for speaker, place in self.speakers.items() if speaker in speakers]
        return self.columns.live & np.isin(self.columns.speakers, places)

    def latest(self, where: Where, conversation: str, most: int) -> list[str]:
        """The ids of the last turns of a conversation that a read may see, `most` of them or fewer, oldest first.

        Where the read admits several scopes that have a conversation of this name, it is read as one.
        """
        scopes = {kind.scope for kind in self.kinds}
        places = [self._talks[scope, conversation] for scope in scopes if (scope, conversation) in self._talks]
        turns = np.flatnonzero(np.isin(self.columns.talks, places) & self.admitted(where))
        order = np.lexsort((self.columns.source[turns], self.columns.occurred_ms[turns]))
        newest = turns[order[max(0, len(order) - most) :]]
        return [self.id_of[number] for number in newest.tolist()]

    def beside(self) -> tuple[Numbers, Numbers]:
        """For each memory the number of the turn before it, and of the one after it, in its conversation."""
        if self._beside is None:
            self._beside = self._find_beside()
        return self._beside

    def _find_beside(self) -> tuple[Numbers, Numbers]:
        columns = self.columns
        before = np.full(len(columns.live), NOBODY)
        after = before.copy()
        turns = np.flatnonzero(columns.live & ~columns.superseded & (columns.talks != NOBODY))
        order = turns[np.lexsort((columns.source[turns], columns.occurred_ms[turns], columns.talks[turns]))]
        first, second = order[:-1], order[1:]
        together = columns.talks[first] == columns.talks[second]
        after[first[together]] = second[together]
        before[second[together]] = first[together]
        return before, after


def _place(places: dict[_Key, int], key: _Key) -> int:
    """The place of a key, given to it when it is new."""
    return places.setdefault(key, len(places))
