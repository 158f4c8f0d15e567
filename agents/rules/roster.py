"""What is known of every memory of one boundary, as columns: which a read may see, who stands beside whom.

A memory has a **number**, its place in every column; numbers are given in order of arrival and never again, so a
forgotten memory leaves a hole. What memories of one speaker in one conversation share is written once, as a trait.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from schemas.memories import Memory
from schemas.vectors import Where

NOBODY = -1
"""In place of a number: there is no such memory."""

Numbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
_Kind = TypeVar("_Kind", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Trait:
    """What many memories share."""

    scope: Mapping[str, str]
    conversation_id: str | None
    speaker: str | None
    mode: str
    type: str
    decay: str

    @classmethod
    def of(cls, memory: Memory) -> Self:
        """The trait of a memory."""
        return cls(memory.scope, memory.conversation_id, memory.speaker, memory.mode, memory.type, memory.decay)

    def dumps(self) -> str:
        """The trait as text; equal traits give equal texts."""
        parts = [self.scope, self.conversation_id, self.speaker, self.mode, self.type, self.decay]
        return json.dumps(parts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @classmethod
    def loads(cls, text: str) -> Self:
        """The trait that was written by `dumps`."""
        return cls(*json.loads(text))

    def admitted(self, where: Where) -> bool:
        """Whether scope, mode and type are those that a read asks for."""
        return (
            (where.modes is None or self.mode in where.modes)
            and (where.types is None or self.type in where.types)
            and all(values is None or self.scope.get(name) in values for name, values in where.scope.items())
        )


class Row(NamedTuple):
    """One memory in the columns. `space` is the digest of the vector space that holds its vector, None for none."""

    number: int
    memory_id: str
    trait: int
    occurred_ms: int
    source: int
    length: int
    importance: float | None
    superseded: int
    space: str | None


class Roster:
    """The memories of one boundary. Changed only by `write` and `remove`; columns must not be changed from outside."""

    def __init__(self, rows: Sequence[Row] = (), traits: Mapping[int, Trait] | None = None) -> None:
        self.number_of: dict[str, int] = {}
        self.id_of: dict[int, str] = {}
        self.traits: list[Trait] = []
        self._trait_places: dict[int, int] = {}
        self._spaces: dict[str, int] = {}
        self._resize(0)
        self.write(rows, traits or {})

    def _resize(self, size: int) -> None:
        old = getattr(self, "columns", None)
        self.columns = np.zeros(size, dtype=_COLUMNS)
        if old is not None:
            self.columns[: len(old)] = old
        self._beside: tuple[Numbers, Numbers] | None = None

    @property
    def documents(self) -> int:
        """How many memories there are."""
        return len(self.number_of)

    @property
    def lengths(self) -> Numbers:
        """The number of terms of each memory, 0 in holes."""
        return self.columns["length"]

    def write(self, rows: Sequence[Row], traits: Mapping[int, Trait]) -> None:
        """Add or replace memories; `traits` holds those of the rows' traits that are not known yet."""
        for key, trait in traits.items():
            self._trait_places.setdefault(key, len(self.traits))
            if len(self.traits) < len(self._trait_places):
                self.traits.append(trait)
        if not rows:
            return
        highest = max(row.number for row in rows)
        if highest >= len(self.columns):
            self._resize(highest + 1 + highest // 8)
        numbers = np.array([row.number for row in rows])
        self.columns[numbers] = [self._column(row) for row in rows]
        self.number_of.update((row.memory_id, row.number) for row in rows)
        self.id_of.update((row.number, row.memory_id) for row in rows)
        self._beside = None

    def _column(self, row: Row) -> tuple[bool, int, int, int, int, float, bool, int]:
        space = NOBODY if row.space is None else self._spaces.setdefault(row.space, len(self._spaces))
        importance = 0.5 if row.importance is None else row.importance
        trait = self._trait_places[row.trait]
        return True, trait, row.occurred_ms, row.source, row.length, importance, bool(row.superseded), space

    def knows(self, trait: int) -> bool:
        """Whether this trait was given to `write` before."""
        return trait in self._trait_places

    def remove(self, number: int) -> None:
        """Leave a hole; an unknown number changes nothing."""
        memory_id = self.id_of.pop(number, None)
        if memory_id is not None:
            del self.number_of[memory_id]
            self.columns[number] = np.zeros((), dtype=_COLUMNS)
            self._beside = None

    def admitted(self, where: Where, include_superseded: bool = False) -> Mask:
        """Which memories a read may see."""
        columns = self.columns
        per_trait = np.fromiter((trait.admitted(where) for trait in self.traits), bool, len(self.traits))
        mask: Mask = columns["live"] & self._spread(per_trait)
        if not include_superseded:
            mask &= ~columns["superseded"]
        if where.since_ms is not None:
            mask &= columns["occurred_ms"] >= where.since_ms
        if where.until_ms is not None:
            mask &= columns["occurred_ms"] < where.until_ms
        return mask

    def embedded(self, space: str) -> Mask:
        """Which memories have their vector in this space."""
        mask: Mask = self.columns["live"] & (self.columns["space"] == self._spaces.get(space, NOBODY - 1))
        return mask

    def of_trait(self, values: Iterable[float]) -> NDArray[np.float64]:
        """One value for each trait, in the order of `traits`, spread over the memories that have it; 0 in holes."""
        spread = self._spread(np.fromiter(values, np.float64, len(self.traits)))
        spread[~self.columns["live"]] = 0.0
        return spread

    def _spread(self, per_trait: NDArray[_Kind]) -> NDArray[_Kind]:
        if not len(per_trait):
            return np.zeros(len(self.columns), dtype=per_trait.dtype)
        spread: NDArray[_Kind] = per_trait[self.columns["trait"]]
        return spread

    def beside(self) -> tuple[Numbers, Numbers]:
        """For each memory the number of the turn before it, and of the one after it, in its conversation."""
        if self._beside is None:
            self._beside = self._find_beside()
        return self._beside

    def _find_beside(self) -> tuple[Numbers, Numbers]:
        before = np.full(len(self.columns), NOBODY)
        after = before.copy()
        talks = self._spread(self._conversations())
        numbers = np.flatnonzero(self.columns["live"] & ~self.columns["superseded"] & (talks != NOBODY))
        columns = self.columns[numbers]
        order = numbers[np.lexsort((columns["source"], columns["occurred_ms"], talks[numbers]))]
        first, second = order[:-1], order[1:]
        together = talks[first] == talks[second]
        after[first[together]] = second[together]
        before[second[together]] = first[together]
        return before, after

    def _conversations(self) -> Numbers:
        """A number for each trait's conversation within its scope; NOBODY where it belongs to none."""
        places: dict[tuple[str, ...], int] = {}
        found = [NOBODY] * len(self.traits)
        for place, trait in enumerate(self.traits):
            if trait.conversation_id is not None and trait.type == "episodic":
                key = (trait.conversation_id, *(f"{name}={trait.scope[name]}" for name in sorted(trait.scope)))
                found[place] = places.setdefault(key, len(places))
        return np.array(found, dtype=np.int64)


_COLUMNS = np.dtype(
    [
        ("live", np.bool_),
        ("trait", np.int64),
        ("occurred_ms", np.int64),
        ("source", np.int64),
        ("length", np.int64),
        ("importance", np.float64),
        ("superseded", np.bool_),
        ("space", np.int64),
    ]
)
