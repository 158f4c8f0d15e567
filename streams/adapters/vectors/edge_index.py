"""The vector index in this process: Qdrant Edge, one shard directory a collection under one root directory.

In go points and questions of the port; out come scored ids. Guaranteed: one owner of the root (a lock, taken before
any shard is opened), what a returned write wrote survives `kill -9`, and with `flush` a power cut too. There is no
optimising: it would hold the interpreter for seconds, and filtered searches are exact and fast without.

The engine is what is true, and what is asked for most things. The vectors of boundaries that questions are about are
held beside it (`edge_held`), as it takes 5 ms to give out 500 ids, and 25 to compare 900 memories token by token.
"""

import asyncio
import fcntl
from collections.abc import Mapping, Sequence
from pathlib import Path

from qdrant_edge import CountRequest, FieldCondition, Filter, MatchValue, Query, UpdateOperation

from schemas.modes import Fingerprint, VectorSpace
from schemas.vectors import Encoded, Matrix, Point, Scored, Vector, Where
from streams.adapters.vectors.edge_boundary import BoundaryVectors
from streams.adapters.vectors.edge_held import HeldBoundaries
from streams.adapters.vectors.edge_packing import packed, unpacked
from streams.adapters.vectors.edge_requests import (
    Start,
    edge_filter,
    edge_point,
    hashes_of,
    page_of,
    scores_of,
    vectors_of,
)
from streams.adapters.vectors.edge_shard import FINGERPRINT, CollectionShard, translated, write_durably
from streams.adapters.vectors.qdrant_payload import PARTITION, admits_none, alias, indexed_fields
from streams.adapters.vectors.qdrant_vectors import TOKENS, pooled_name
from streams.adapters.vectors.vector_contract import (
    BATCH,
    FETCHED,
    checked,
    checked_fingerprint,
    checked_ids,
    checked_rows,
    checked_vector,
    cosines,
    nearest,
    portions,
    ranked,
    rows_of,
)
from streams.batching import batches

LOCK = ".owner.lock"
"""The file in the root directory whose lock its owner holds. The kernel frees it with the process."""

UNFLUSHED = 4096
"""Writes of one collection between two flushes of its segments, which hold the interpreter for 30 ms, or 300 on a busy
disk. It keeps the log short: with the tokens of short texts 65 MB, read again in a second after a kill."""

PAGE = 1024
"""Points whose packed vectors are read in one call, which holds the interpreter for 20 ms."""

SHORT_TEXT = 16
"""Token vectors of a typical turn. A longer text counts as so many writes more as it has times these."""


class EdgeIndex:
    """`VectorIndex` on Qdrant Edge."""

    def __init__(self, root: Path, held: HeldBoundaries | None = None) -> None:
        """Take the directory. Raises RuntimeError when another process has it."""
        root.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._lock = (root / LOCK).open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise RuntimeError(f"another process owns the vector index in {root}") from error
        self._shards: dict[str, CollectionShard] = {}
        self._unflushed: dict[str, int] = {}
        self._held = held or HeldBoundaries()
        self._reading = asyncio.Lock()

    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> None:
        """Write points, in batches that let others run between them."""
        fresh = checked(space, points)
        if not fresh:
            return
        shard = self._existing(space) or self._created(space)
        shard.index(indexed_fields(fresh))
        for batch in portions(fresh):
            self._upserted(shard, space, batch)
            await asyncio.sleep(0)
        await self._written(space, max(len(fresh), sum(map(rows_of, fresh)) // SHORT_TEXT))

    async def delete(self, space: VectorSpace, memory_ids: Sequence[str]) -> None:
        """Remove points; unknown ids are ignored."""
        known = checked_ids(memory_ids)
        if not known or (shard := self._existing(space)) is None:
            return
        for batch in batches(known, BATCH):
            self._changed(shard, space, UpdateOperation.delete_points(list(batch)))
            self._held.removed(space.collection, batch)
            await asyncio.sleep(0)
        await self._written(space, len(known))

    async def search(self, space: VectorSpace, vector: Vector, where: Where, limit: int) -> list[Scored]:
        """The nearest points that `where` admits: exact, best first, equal ones by id."""
        numbers = checked_vector(space, vector)
        if (held := await self._boundary(space, where)) is not None:
            return held.nearest(vector, where, limit)
        query = Query.Nearest(numbers, using=pooled_name(space.fingerprint))

        async def fetch(count: int) -> list[Scored]:
            return cosines(self._found(space, query, where, count))

        return await nearest(fetch, limit)

    async def score(self, space: VectorSpace, vector: Vector, where: Where, memory_ids: Sequence[str]) -> list[Scored]:
        """The cosines of these memories, as far as they have a vector and `where` admits them."""
        known = checked_ids(memory_ids)
        query = Query.Nearest(checked_vector(space, vector), using=pooled_name(space.fingerprint))
        return cosines(self._found(space, query, where, len(known), known)) if known else []

    async def late(
        self, space: VectorSpace, question: Matrix, where: Where, limit: int, memory_ids: Sequence[str] | None = None
    ) -> list[Scored]:
        """Late interaction, exact: over all that `where` admits, or over these memories as far as it admits them."""
        rows = checked_rows(space, question)
        if not rows or (memory_ids is not None and not memory_ids):
            return []
        if (held := await self._boundary(space, where)) is not None:
            # What is held was checked when it was written.
            checked_ids([one for one in memory_ids or () if one not in held.rows])
            return held.late(question, where, limit, memory_ids)
        known = None if memory_ids is None else checked_ids(memory_ids)
        query = Query.Nearest(rows, using=TOKENS)

        async def fetch(count: int) -> list[Scored]:
            return ranked(self._found(space, query, where, count, known))

        return await nearest(fetch, limit)

    async def hashes(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, str]:
        """The content hash of each of these memories' points, for those that have one."""
        known = checked_ids(memory_ids)
        kept: dict[str, str] = {}
        if (shard := self._existing(space)) is None:
            return kept
        for batch in batches(known, BATCH):
            kept |= shard.ask(hashes_of(batch))
            await asyncio.sleep(0)
        return kept

    async def vectors(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Encoded]:
        """The vectors of these memories' points, the pooled ones of length 1 as a cosine index keeps them."""
        known = checked_ids(memory_ids)
        kept: dict[str, Encoded] = {}
        if (shard := self._existing(space)) is None:
            return kept
        for batch in batches(known, FETCHED):
            kept |= shard.ask(vectors_of(space.fingerprint, batch))
            await asyncio.sleep(0)
        return kept

    async def count(self, space: VectorSpace, partition: int) -> int:
        """How many points a partition has in this space."""
        if (shard := self._existing(space)) is None:
            return 0
        request = CountRequest(filter=Filter(must=[FieldCondition(PARTITION, match=MatchValue(partition))]))
        return shard.ask(lambda engine: engine.count(request))

    async def spaces(self) -> Mapping[str, Fingerprint]:
        """The collections that exist, by name, with the fingerprint that is kept in each."""
        files = self._root.glob(f"[!.]*/{FINGERPRINT}")
        return {file.parent.name: Fingerprint.model_validate_json(file.read_text()) for file in files}

    async def close(self) -> None:
        """Flush and close every shard, then let the directory go."""
        try:
            while self._shards:
                self._shards.popitem()[1].close()
        finally:
            self._lock.close()

    def _found(
        self, space: VectorSpace, query: Query, where: Where, limit: int, memory_ids: Sequence[str] | None = None
    ) -> list[tuple[object, float]]:
        if admits_none(where) or (shard := self._existing(space)) is None:
            return []
        return shard.ask(scores_of(query, edge_filter(where, memory_ids), limit))

    async def _boundary(self, space: VectorSpace, where: Where) -> BoundaryVectors | None:
        """The vectors of the boundary, read where they are not held; None where the engine is to be asked."""
        place = space.collection, where.boundary
        shard = self._existing(space)
        while shard is not None and not self._held.knows(place):
            async with self._reading:
                if not self._held.knows(place):
                    self._held.keep(place, await self._read(shard, space, where.boundary))
        return None if shard is None else self._held.get(place)

    async def _read(self, shard: CollectionShard, space: VectorSpace, boundary: str) -> BoundaryVectors | None:
        """All points of a boundary; None where they can't be held."""
        writes = self._held.writes[space.collection]
        vectors = await self._gone_through(shard, space, boundary, lets_others_run=True)
        if writes != self._held.writes[space.collection]:
            # Others wrote meanwhile, perhaps to what was read already.
            vectors = await self._gone_through(shard, space, boundary, lets_others_run=False)
        return vectors

    async def _gone_through(
        self, shard: CollectionShard, space: VectorSpace, boundary: str, *, lets_others_run: bool
    ) -> BoundaryVectors | None:
        vectors = BoundaryVectors(space.fingerprint)
        following: Start = None
        while True:
            whole, following = shard.ask(page_of(space.fingerprint, boundary, following, PAGE, vectors))
            if not whole or len(vectors.rows) > self._held.most_points:
                return None
            if following is None:
                return vectors
            if lets_others_run:
                await asyncio.sleep(0)

    def _upserted(self, shard: CollectionShard, space: VectorSpace, points: Sequence[Point]) -> None:
        fingerprint = space.fingerprint
        strings = [packed(fingerprint, point) for point in points]
        made = [edge_point(fingerprint, point, string) for point, string in zip(points, strings, strict=True)]
        self._changed(shard, space, UpdateOperation.upsert_points(made))
        vectors = [None if string is None else unpacked(fingerprint, string) for string in strings]
        self._held.written(space.collection, zip(points, vectors, strict=True))

    def _changed(self, shard: CollectionShard, space: VectorSpace, operation: UpdateOperation) -> None:
        try:
            shard.update(operation)
        except BaseException:
            # The engine may have applied a part of it.
            self._held.drop_all(space.collection)
            raise

    def _existing(self, space: VectorSpace) -> CollectionShard | None:
        if self._lock.closed:
            # Opening a shard that another process may own by now would damage it.
            raise RuntimeError(f"the vector index in {self._root} is closed")
        name = space.collection
        if name not in self._shards:
            if not (self._root / name).exists():
                return None
            self._shards[name] = CollectionShard(self._root / name)
        checked_fingerprint(space, self._shards[name].fingerprint)
        return self._shards[name]

    def _created(self, space: VectorSpace) -> CollectionShard:
        # The alias first: killed in between, it names a collection that the repeated write makes.
        translated(lambda: write_durably(self._root / alias(space.mode), space.collection))
        shard = CollectionShard.create(self._root / space.collection, space.fingerprint)
        self._shards[space.collection] = shard
        return shard

    async def _written(self, space: VectorSpace, count: int) -> None:
        """Make writes durable: the log always, the segments now and then."""
        shard = self._shards[space.collection]
        await shard.sync_log()
        waiting = self._unflushed.get(space.collection, 0) + count
        if waiting >= UNFLUSHED:
            shard.flush()
            waiting = 0
        self._unflushed[space.collection] = waiting
