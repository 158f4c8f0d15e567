"""In-memory column store of the memories of one boundary: filters, neighbours in conversations, recent window.

A memory has a **number**, its row in every column. Numbers without a memory are empty rows. Attributes that many
memories share are stored once, as a trait.
"""

import json
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import islice, product
from typing import NamedTuple, Self, TypeVar

import numpy as np
import orjson
from modestream_client.arguments import Filters, FilterValue
from modestream_client.vocabulary import Decay
from numpy.typing import NDArray

from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.columns import MISSING, ColumnArrays, DerivedColumns, FloatArray, IntArray, Mask, TurnOrder
from agents.rules.text.languages import UNKNOWN_LANGUAGE
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import Memory, ReadMemory

ScopeItems = tuple[tuple[str, str], ...]
"""A scope as hashable pairs, sorted by name."""

KeyArray = NDArray[np.uint64]
"""Digests or ids that filters compare, shape (keys,)."""

TURN_TYPE = "episodic"
"""The type of turns; memories of other types are distilled from turns."""

MAX_DUMPED_TRAITS = 1024
"""Serialised traits that are kept: the turns of a conversation share one."""


class MemoryKind(NamedTuple):
    """The attributes that a read filters by, and the decay.

    `turn_mode` is the mode of the turn, for items in another mode and for turns with such items; None for all others.
    """

    scope: ScopeItems
    mode: str
    type: str
    decay: Decay
    turn_mode: str | None = None

    def admitted(self, where: MemoryFilter) -> bool:
        """True if a read admits this scope, mode and type."""
        return where.admits(self.mode, self.type, dict(self.scope))


@dataclass(frozen=True, slots=True)
class Trait:
    """A kind, the speaker, and the conversation, which is None for memories distilled from turns."""

    kind: MemoryKind
    conversation: str | None
    speaker: str | None

    @classmethod
    def of(cls, memory: Memory) -> Self:
        turn_mode = memory.mode if memory.items_apart else memory.item.turn_mode if memory.item else None
        kind = MemoryKind(tuple(sorted(memory.scope.items())), memory.mode, memory.type, memory.decay, turn_mode)
        return cls(kind, memory.conversation_id if memory.type == TURN_TYPE else None, memory.speaker)

    def dumps(self) -> str:
        """Serialise the trait; equal traits give equal texts."""
        return _dumped(self)

    @classmethod
    def loads(cls, text: str) -> Self:
        [scope, *others], conversation, speaker = orjson.loads(text)
        return cls(MemoryKind(tuple((name, value) for name, value in scope), *others), conversation, speaker)


@lru_cache(MAX_DUMPED_TRAITS)
def _dumped(trait: Trait) -> str:
    kind = [*trait.kind] if trait.kind.turn_mode else [*trait.kind[:-1]]
    return orjson.dumps([kind, trait.conversation, trait.speaker]).decode()


KEY_BYTES = 8
"""Bytes of a digest of metadata, or of the beginning of a memory's id: two of a user's collide with a probability of
one in a million at millions of them."""

KEYS_BYTES = 130
"""Additional bytes of one memory's unique keys, about three times their own."""

MAX_FILTERED_VALUES = 1000
"""Maximum metadata values of a turn that filters find, its first ones: each takes 2 us and 8 bytes per write."""


def keys_of(memory: Memory) -> bytes:
    """Return the keys of a memory that filters compare (`MemoryRow.keys`)."""
    if memory.type != TURN_TYPE:
        sources = dict.fromkeys(quote.memory_id for quote in memory.evidence if quote.memory_id is not None)
        return _id_keys(sources).tobytes()
    scalars = ((name, value) for name, value in memory.metadata.items() if isinstance(value, FilterValue))
    return b"".join(sorted(_metadata_key(*pair) for pair in islice(scalars, MAX_FILTERED_VALUES)))


def _metadata_key(name: str, value: FilterValue) -> bytes:
    # A whole number is the same number as a float, as it is in JSON.
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    return blake2b(json.dumps([name, number]).encode(), digest_size=KEY_BYTES).digest()


def _id_keys(memory_ids: Iterable[str]) -> KeyArray:
    """Return the first half of each id, a UUID."""
    halves = np.frombuffer(bytes.fromhex("".join(memory_ids).replace("-", "")), np.uint64)
    return halves[::2]


MAX_TIME_CHANGES = 1000
"""Memories whose time was edited, remembered for lists that have begun."""

_Value = TypeVar("_Value", bound=Hashable)


class MemoryRow(NamedTuple):
    """One memory. `space` is the digest of the vector space of its vector, None without a vector.

    `held` are the digests of further spaces with a vector of it, separated by blanks: of former embedders. `language`
    is an index in `agents.rules.text.languages.LANGUAGES`, `labels` are flags of `SentenceLabel`. `keys` are compared
    by filters, `KEY_BYTES` each: the digests of a turn's metadata, of a derived memory the ids of its turns.
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
    labels: int = 0
    held: str = ""
    keys: bytes = b""
    accepted_ms: int = 0
    superseded_ms: int = 0


class TimeHistory(NamedTuple):
    """State for lists that have begun, kept across rereads: the number of writes, and memories' former times.

    `moved` has the number of writes before, the memory's id, and its former time in ms since the epoch.
    """

    changes: int = 0
    moved: tuple[tuple[int, str, int], ...] = ()


class MemoryColumns:
    """The memories of one boundary. Only `write` changes them; returned arrays must not be modified."""

    def __init__(
        self,
        rows: Sequence[MemoryRow] = (),
        traits: Mapping[int, Trait] | None = None,
        earlier: TimeHistory = TimeHistory(),  # noqa: B008 - it is immutable
        turns: Callable[[], Sequence["MemoryColumns"]] | None = None,
    ) -> None:
        """`earlier` is the `history` of the columns that these replace.

        `turns` returns the columns with the boundary's turns, of which these memories are derived; by default these.
        """
        self.columns = ColumnArrays.empty(0)
        self.number_of: dict[str, int] = {}
        self.id_of: dict[int, str] = {}
        self.changes = earlier.changes
        """Number of writes: the version for caches of values derived from the columns."""
        self.kinds: dict[MemoryKind, int] = {}
        self.speakers: dict[str, int] = {}
        self._conversations: dict[tuple[ScopeItems, str], int] = {}
        self._spaces: dict[str, int] = {}
        self._held: dict[str, Mask] = {}
        """Memories with a further vector in a space, by its digest; empty until an embedder is changed."""
        self._traits: dict[int, tuple[int, int, int]] = {}
        self._keys: dict[bytes, int] = {b"": 0}
        self.key_bytes = 0
        """Bytes of different `MemoryRow.keys`, about."""
        self._keyed: KeyTable | None = None
        self._turns = turns
        self._matching: tuple[Filters, Sequence[int], Mask] | None = None
        """The last filters with their result, and the `changes` of its columns."""
        self._order: TurnOrder | None = None
        self._derived: DerivedColumns | None = None
        self._time_changes: deque[tuple[int, str, int]] = deque(earlier.moved, MAX_TIME_CHANGES)
        self.write(rows, traits or {})

    @property
    def documents(self) -> int:
        return len(self.number_of)

    def has_trait(self, trait: int) -> bool:
        """True if `write` got this trait before."""
        return trait in self._traits

    def write(self, rows: Sequence[MemoryRow], traits: Mapping[int, Trait]) -> None:
        """Add or replace memories; `traits` holds the rows' traits that `has_trait` does not know."""
        for key, trait in traits.items():
            name = trait.conversation
            conversation = MISSING if name is None else _index_in(self._conversations, (trait.kind.scope, name))
            speaker = MISSING if trait.speaker is None else _index_in(self.speakers, trait.speaker)
            self._traits[key] = _index_in(self.kinds, trait.kind), conversation, speaker
        if not rows:
            return
        self.changes += 1
        self._derived = None
        keys_before = [self._order_key(row.number) for row in rows]
        self._write_columns(rows)
        self.number_of.update((row.memory_id, row.number) for row in rows)
        self.id_of.update((row.number, row.memory_id) for row in rows)
        # Turns at the end of their conversation are appended to the order; any other change drops it.
        for row, before in zip(rows, keys_before, strict=True):
            if self._order is None or before == self._order_key(row.number):
                continue
            if before is not None or not self._order.append(row.number, self.columns):
                self._order = None

    def _write_columns(self, rows: Sequence[MemoryRow]) -> None:
        of_rows = zip(*rows, strict=True)
        numbers, _, traits, occurred, source, lengths, importance, superseded, spaces, *others = of_rows
        languages, labels, held, keys, accepted, superseded_at = others
        if max(numbers) >= len(self.columns.live):
            self.columns = self.columns.extended_to(max(numbers) * 9 // 8 + 1)
        columns, at = self.columns, np.array(numbers)
        for row in np.flatnonzero(columns.live[at] & (columns.occurred_ms[at] != occurred)).tolist():
            before = int(columns.occurred_ms[numbers[row]])
            self._time_changes.append((self.changes, rows[row].memory_id, before))
        columns.live[at] = True
        columns.superseded[at] = superseded
        columns.accepted_ms[at] = accepted
        columns.superseded_ms[at] = superseded_at
        columns.kinds[at], columns.conversations[at], columns.speakers[at] = np.array(
            [self._traits[trait] for trait in traits]
        ).T
        columns.spaces[at] = [MISSING if space is None else _index_in(self._spaces, space) for space in spaces]
        columns.occurred_ms[at] = occurred
        columns.source[at] = source
        columns.lengths[at] = lengths
        columns.importance[at] = importance
        columns.languages[at] = languages
        columns.labels[at] = labels
        new_keys = {some for some in keys if some not in self._keys}
        self.key_bytes += sum(KEYS_BYTES + 3 * len(some) for some in new_keys)
        columns.keys[at] = [_index_in(self._keys, some) for some in keys]
        size = len(self.columns.live)
        for digest in {*self._held, *(digest for each in filter(None, held) for digest in each.split())}:
            in_space = self._held.get(digest, np.zeros(0, np.bool_))
            if len(in_space) < size:
                in_space = np.concatenate((in_space, np.zeros(size - len(in_space), np.bool_)))
            in_space[at] = [digest in each.split() for each in held]
            self._held[digest] = in_space

    def _order_key(self, number: int) -> tuple[int, ...] | None:
        """Return the sort key of a memory in its conversation; None without a memory or without an order."""
        columns = self.columns
        if self._order is None or number >= len(columns.live) or not columns.live[number]:
            return None
        return tuple(
            int(column[number])
            for column in (columns.conversations, columns.occurred_ms, columns.source, columns.superseded)
        )

    def admitted(self, where: MemoryFilter, *, include_superseded: bool = False) -> Mask:
        """Return the memories that a read may see."""
        matching = None if where.filters is None else self.matching(where.filters)
        columns = self.columns
        mask: Mask = columns.live & self.of_kind(lambda kind: kind.admitted(where)).astype(np.bool_)
        if where.as_of_ms is not None:
            mask &= columns.accepted_ms <= where.as_of_ms
        if not include_superseded:
            mask &= ~self.superseded(where)
        if where.since_ms is not None:
            mask &= columns.occurred_ms >= where.since_ms
        if where.until_ms is not None:
            mask &= columns.occurred_ms < where.until_ms
        return mask if matching is None else mask & matching

    def superseded(self, where: MemoryFilter) -> Mask:
        """Return the memories that are superseded to a read."""
        columns = self.columns
        if where.as_of_ms is None:
            return columns.superseded
        mask: Mask = columns.superseded & (columns.superseded_ms <= where.as_of_ms)
        return mask

    def matching(self, filters: Filters) -> Mask:
        """Return the turns that match, and the memories derived from such turns alone."""
        turns = (self,) if self._turns is None else self._turns()
        versions = [columns.changes for columns in (self, *turns)]
        if self._matching is None or self._matching[0] is not filters or self._matching[1] != versions:
            is_turn = self.of_kind(lambda kind: kind.type == TURN_TYPE) > 0
            derived = self.columns.live & ~is_turn
            mask = is_turn & self._said(filters)
            if derived.any():
                # Superseded turns, too: a memory that replaces them is derived from them.
                said = [(columns.id_of, np.flatnonzero(columns._said(filters))) for columns in turns]  # noqa: SLF001
                sources = [_id_keys(map(id_of.__getitem__, numbers.tolist())) for id_of, numbers in said]
                mask |= derived & self._key_table().all_of(np.concatenate(sources))[self.columns.keys]
            self._matching = filters, versions, mask
        return self._matching[2]

    def matches(self, memory_id: str, where: MemoryFilter) -> bool:
        """True if a memory of these columns is one that `filters` and `as_of_ms` admit."""
        number = self.number_of.get(memory_id)
        if number is None or (where.as_of_ms is not None and self.columns.accepted_ms[number] > where.as_of_ms):
            return False
        return where.filters is None or bool(self.matching(where.filters)[number])

    def _said(self, filters: Filters) -> Mask:
        columns = self.columns
        mask: Mask = columns.live & (columns.conversations != MISSING)
        if filters.conversation_id:
            mask &= self.in_conversation(*filters.conversation_id)
        if filters.speaker:
            mask &= self.spoken_by(frozenset(filters.speaker))
        if filters.role:
            roles = sum(SentenceLabel[role.upper()].value for role in {*filters.role})
            mask &= (columns.labels & roles) != 0
        for name, values in filters.metadata.items():
            keys = np.frombuffer(b"".join(_metadata_key(name, value) for value in values), np.uint64)
            mask &= self._key_table().any_of(keys)[columns.keys]
        return mask

    def _key_table(self) -> "KeyTable":
        # Keys are never removed: their number is their version.
        if self._keyed is None or self._keyed.size != len(self._keys):
            self._keyed = KeyTable(list(self._keys))
        return self._keyed

    @property
    def history(self) -> TimeHistory:
        """State for the columns that replace these."""
        return TimeHistory(self.changes, tuple(self._time_changes))

    def times_at(self, numbers: IntArray, changes: int) -> IntArray:
        """Return the times of memories, whose numbers ascend, in ms since the epoch, after this many changes.

        With more than `MAX_TIME_CHANGES` changed times, and after a restart, some are the new ones.
        """
        times: IntArray = self.columns.occurred_ms[numbers]
        for changed, memory_id, before in reversed(self._time_changes):
            number = self.number_of.get(memory_id, MISSING)
            row = int(np.searchsorted(numbers, number))
            if changed > changes and row < len(numbers) and numbers[row] == number:
                times[row] = before
        return times

    def embedded(self, space: str) -> Mask:
        mask: Mask = self.columns.spaces == self._spaces.get(space, MISSING - 1)
        return self.columns.live & (mask | self._held[space] if space in self._held else mask)

    def held(self) -> Mask:
        """Return the memories with a vector of a former embedder of their mode."""
        mask = np.zeros(len(self.columns.live), np.bool_)
        for in_space in self._held.values():
            mask |= in_space
        return self.columns.live & mask

    def non_english(self) -> Mask:
        """Return the memories in a language that an English embedding model can't read."""
        mask: Mask = (self.columns.labels & SentenceLabel.FOREIGN.value) != 0
        return mask

    def of_kind(self, value: Callable[[MemoryKind], float]) -> FloatArray:
        """Return a value for each memory that depends only on its kind."""
        values = np.array([*map(value, self.kinds), 0.0])
        per_memory: FloatArray = values[self.columns.kinds]
        return per_memory

    def spoken_by(self, speakers: frozenset[str]) -> Mask:
        indexes = [index for speaker, index in self.speakers.items() if speaker in speakers]
        if not indexes:
            # Most questions name no speaker.
            return np.zeros(len(self.columns.live), np.bool_)
        return self.columns.live & np.isin(self.columns.speakers, indexes)

    def in_conversation(self, *names: str) -> Mask:
        """Return the turns of the conversations of these names, in any scope."""
        scopes, indexes_by_name = {kind.scope for kind in self.kinds}, self._conversations
        if len(names) * len(scopes) <= len(indexes_by_name):
            known = product(scopes, names)
            indexes = [indexes_by_name[conversation] for conversation in known if conversation in indexes_by_name]
        else:
            wanted = frozenset(names)
            indexes = [index for (_, name), index in indexes_by_name.items() if name in wanted]
        return self.columns.live & np.isin(self.columns.conversations, indexes)

    def conversation_names(self) -> list[tuple[ScopeItems, str]]:
        return list(self._conversations)

    def latest(self, where: MemoryFilter, conversation: str, limit: int) -> list[str]:
        """Return the ids of the last turns of a conversation that a read may see, at most `limit`, oldest first.

        Conversations of this name in several admitted scopes are read as one.
        """
        turns = self.columns.by_time(np.flatnonzero(self.in_conversation(conversation) & self.admitted(where)))
        return [self.id_of[number] for number in turns[max(0, len(turns) - limit) :].tolist()]

    def beginning(self, scope: ScopeItems, conversation: str, limit: int) -> list[str]:
        """Return the ids of the first turns of a conversation, at most `limit`, oldest first."""
        index = self._conversations.get((scope, conversation), MISSING - 1)
        turns = self.columns.by_time(np.flatnonzero(self.columns.live & (self.columns.conversations == index)))
        return [self.id_of[number] for number in turns[:limit].tolist()]

    def kind_of(self, memory_id: str) -> MemoryKind:
        return next(islice(self.kinds, int(self.columns.kinds[self.number_of[memory_id]]), None))

    def order(self) -> TurnOrder:
        """Return neighbours and positions of the turns in their conversations."""
        if self._order is None:
            self._order = TurnOrder.of(self.columns)
        return self._order

    def derived(self) -> DerivedColumns:
        """Return data derived from the present columns; the next write makes it outdated."""
        if self._derived is None:
            self._derived = DerivedColumns(self.columns, self.order(), self.number_of)
        return self._derived

    def languages(self) -> Sequence[int]:
        """Return the indexes of the spoken languages, the most common first; English if none is known."""
        return self.derived().languages


class KeyTable:
    """The different `MemoryRow.keys` of some columns, by their indexes."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self.size = len(keys)
        self._flat = np.frombuffer(b"".join(keys), np.uint64)
        self._counts = np.array([len(some) // KEY_BYTES for some in keys], np.int64)
        self._owners = np.repeat(np.arange(self.size), self._counts)

    def any_of(self, wanted: KeyArray) -> Mask:
        """Return a mask of the rows that have one of these keys."""
        return self._matches(wanted) > 0

    def all_of(self, wanted: KeyArray) -> Mask:
        """Return which have only these keys, and at least one."""
        mask: Mask = (self._counts > 0) & (self._matches(wanted) == self._counts)
        return mask

    def _matches(self, wanted: KeyArray) -> IntArray:
        return np.bincount(self._owners[np.isin(self._flat, wanted)], minlength=self.size)


def _index_in(indexes: dict[_Value, int], value: _Value) -> int:
    return indexes.setdefault(value, len(indexes))


def filtered_reader(read: ReadMemory, columns_of: Callable[[str], MemoryColumns], where: MemoryFilter) -> ReadMemory:
    """Return a reader that hides memories that `filters` and `as_of_ms` do not admit.

    `columns_of` takes the name of an index.
    """
    if not where.needs_columns:
        return read

    def read_matching(memory_id: str) -> Memory | None:
        memory = read(memory_id)
        is_match = memory is not None and columns_of(memory.index_name).matches(memory_id, where)
        return memory if is_match else None

    return read_matching


MAX_REPORTED_TURNS = 200
"""Last turns that a reply includes or reports as dropped. Reporting all would make the reply grow with the
conversation."""


def last_turns(columns: MemoryColumns, where: MemoryFilter, conversation: str | None, count: int = 0) -> list[str]:
    """Return the ids of the last `count` turns or more, oldest first; empty without a conversation."""
    if conversation is None:
        return []
    return columns.latest(where, conversation, max(MAX_REPORTED_TURNS, count))
