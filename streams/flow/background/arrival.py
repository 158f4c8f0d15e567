"""Prepare newly assigned partitions, after table recovery and before events flow.

The lexical index is compared with the group's committed offsets: if it is behind, because another worker was ahead or
the disk is new, it is rebuilt from the table; one that was kept as a copy is brought up to date from the changelog.
Memories that a killed worker removed from the table alone are removed from the index, and the indexer is notified; what
else it was writing is completed once its records are handled again. A rebuilt index can't show them: if a command was
interrupted, the indexer is notified of all memories that the command may have moved or forgotten.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from itertools import chain, islice

import structlog

from agents.memory.recovery import find_removed_but_indexed, repair_superseded_flags
from agents.rules.index.lexical_document import LexicalDocument, is_long
from agents.rules.memory.embedding_status import may_need_resend
from agents.rules.text.passages import whole_text
from schemas.failures import Unavailable
from schemas.internal.events import Forgotten, Remembered
from schemas.state.memories import Memory
from streams.flow.background.word_copies import WordCopies
from streams.flow.requests.events import notify_indexer
from streams.flow.support.awaiting import await_all
from streams.flow.support.backoff import until_available
from streams.flow.worker_context import WorkerContext
from streams.wire.partitioning import partition_of

CommittedOffsets = Callable[[], Awaitable[Mapping[tuple[str, int], int]]]
"""The offsets that the group has committed, by topic and partition."""

LogEnd = Callable[[str, int], Awaitable[int]]
"""Returns the end offset of a topic's partition; raises Unavailable."""

RowsAfter = Callable[[int, int], AsyncIterator[tuple[Mapping[bytes, bytes | None], int]]]
"""The rows of memories of a partition from an offset of their changelog on, as far as the table is filled, some at a
time and each time with the next offset; raises Unavailable."""

BuildWords = Callable[[int, Iterable[bytes]], Awaitable[bool]]
"""Builds the index of a partition, which is not open, of the rows of its memories, elsewhere; False if that failed."""

MIN_BUILT_APART = 5000
"""Memories of a partition whose index is built elsewhere: to begin that takes as long as some thousand of them."""

YIELD_EVERY = 200
"""Records between two pauses for the event loop, so that heartbeats and liveness continue; a long one has its own."""

log = structlog.get_logger()


class PartitionPreparer:
    """Assigned partitions in, their lexical indexes open and consistent."""

    def __init__(
        self,
        committed: CommittedOffsets,
        log_end: LogEnd,
        ctx: WorkerContext,
        copies: WordCopies | None = None,
        rows_after: RowsAfter | None = None,
        build: BuildWords | None = None,
    ) -> None:
        """Without `copies` and `rows_after` an index that is behind is rebuilt; without `build`, here."""
        self._build = build
        self._copies = copies
        self._rows_after = rows_after
        self._committed = committed
        self._log_end = log_end
        self._memories = ctx.stores.memories
        self._words = ctx.stores.words
        self._ctx = ctx
        self._notify = notify_indexer(ctx.publisher, ctx.topics.remembered)

    async def prepare(self, partitions: Collection[int]) -> None:
        """Open the lexical index of these partitions; rebuild it if it is behind."""
        names = self._ctx.topics
        topics = (names.turns, names.embedded, names.understood, names.changes, names.consolidated)
        committed = await self._committed()
        behind = []
        for partition in partitions:
            self._serve(partition, is_complete=False)
            self._words.open(partition)
            self._ctx.commit.arrive(partition)
            applied = self._words.applied(partition)
            if any(applied.get(topic, 0) < committed.get((topic, partition), 0) for topic in topics):
                behind.append(partition)
        if behind:
            await self._bring_up_to_date(behind, committed, topics)
        for partition in partitions:
            await self._remove_orphans(partition)
            await self._note_interrupted(partition, topics)
        for partition in partitions:
            self._ctx.progress.start(partition, self._words.applied(partition).get(topics[0], 0))
            self._serve(partition, is_complete=True)

    def _serve(self, partition: int, *, is_complete: bool) -> None:
        if self._copies is not None:
            self._copies.serve(partition, is_complete=is_complete)

    async def _remove_orphans(self, partition: int) -> None:
        """Remove indexed memories that the table has not, and notify the indexer."""
        has_orphans, stores = False, self._ctx.stores.at(partition)
        for number, event in enumerate(find_removed_but_indexed(stores.memories, stores.words)):
            if event is not None:
                has_orphans = True
                await (await self._notify(event, partition))
                self._words.remove(partition, event.memory_id)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        repairs = repair_superseded_flags(stores.memories, stores.words) if has_orphans else ()
        for number, _ in enumerate(repairs):
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)

    async def _note_interrupted(self, partition: int, topics: Iterable[str]) -> None:
        """Have what a killed worker was writing completed, once its records are handled again."""
        if self._words.interrupted(partition):
            ends = {
                topic: await until_available(partial(self._log_end, topic, partition), "kafka", self._ctx.meters)
                for topic in topics
            }
            self._ctx.commit.interrupted.arrive(partition, ends)
            await self._ctx.commit.commit([partition])

    async def _bring_up_to_date(
        self, partitions: Collection[int], committed: Mapping[tuple[str, int], int], topics: Iterable[str]
    ) -> None:
        lacking = [partition for partition in partitions if not await self._follow(partition)]
        changing = await asyncio.gather(*(self._is_changing(partition, committed) for partition in partitions))
        interrupted = [partition for partition, is_changing in zip(partitions, changing, strict=True) if is_changing]
        if lacking:
            await self._rebuild(lacking)
        await await_all([*await self._resend_changed(interrupted), *await self._resend_forgotten(interrupted)])
        for partition in partitions:
            for topic in topics:
                self._words.set_applied(partition, topic, committed.get((topic, partition), 0))
            self._words.commit(partition)

    async def _follow(self, partition: int) -> bool:
        """Apply what a copy lacks; False if the index is no copy, or the changelog can't be read."""
        if self._copies is None or self._rows_after is None or not self._copies.has_position(partition):
            return False
        try:
            async for rows, position in self._rows_after(partition, self._copies.position(partition)):
                await self._copies.apply(partition, rows, position)
        except Unavailable as problem:
            log.warning("the copy of a lexical index can't be brought up to date", problem=str(problem))
            return False
        return True

    async def _rebuild(self, partitions: Collection[int]) -> None:
        log.info("rebuilding the lexical index from the table", partitions=sorted(partitions))
        await asyncio.gather(*(self._rebuild_one(partition) for partition in partitions))

    async def _rebuild_one(self, partition: int) -> None:
        """Build the index elsewhere if it is large, otherwise, or if that fails, here."""
        self._words.drop(partition)
        rows = self._memories.rows(partition)
        first = list(islice(rows, MIN_BUILT_APART))
        is_large = len(first) == MIN_BUILT_APART
        is_built = is_large and self._build is not None and await self._build(partition, chain(first, rows))
        self._words.open(partition)
        if is_built:
            return
        for number, row in enumerate(self._memories.rows(partition)):
            memory = Memory.model_validate_json(row)
            self._words.put(partition, LexicalDocument(memory))
            if number % YIELD_EVERY == 0:
                # An index that is killed while it is rebuilt is rebuilt again.
                self._words.rotate_unfinished(partition)
            if number % YIELD_EVERY == 0 or is_long(whole_text(memory.text, memory.resources)):
                await asyncio.sleep(0)

    async def _is_changing(self, partition: int, committed: Mapping[tuple[str, int], int]) -> bool:
        """True if a change is not finished, or if that is unknown."""
        try:
            changes = self._ctx.topics.changes
            return await self._log_end(changes, partition) > committed.get((changes, partition), 0)
        except Unavailable:
            return True

    async def _resend_changed(self, partitions: Collection[int]) -> list[Awaitable[object]]:
        """Have the vectors of all memories that were changing made; return the sent events to await."""
        sent = []
        for number, memory in enumerate(self._memories.all() if partitions else ()):
            partition = partition_of(memory.boundary.encode(), self._ctx.partitions)
            if partition in partitions and may_need_resend(memory):
                sent.append(await self._notify(Remembered(memory=memory), partition))
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return sent

    async def _resend_forgotten(self, partitions: Collection[int]) -> list[Awaitable[object]]:
        """Have the vectors of all tombstones removed; return the sent events to await."""
        sent = []
        for number, (memory_id, place) in enumerate(self._memories.tombstones() if partitions else ()):
            event = Forgotten(memory_id=memory_id, places=(place,))
            for partition in partitions:
                if self._memories.is_removed(partition, memory_id):
                    sent += [await self._notify(event, partition)]
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        return sent
