"""Prepare newly assigned partitions, after table recovery and before events flow.

Recovery has brought rows and lexical index to the end of the changelogs. An index that is not complete, because the
disk or its version is new or too much was recovered, is built anew from the table.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from itertools import chain, islice

import structlog

from agents.rules.index.lexical_document import LexicalDocument, is_long
from agents.rules.text.passages import whole_text
from schemas.state.memories import Memory
from streams.flow.worker_context import WorkerContext

CommittedOffsets = Callable[[], Awaitable[Mapping[tuple[str, int], int]]]
"""The offsets that the group has committed, by topic and partition."""

BuildWords = Callable[[int, Iterable[bytes]], Awaitable[bool]]
"""Builds the index of a partition, which is not open, of the rows of its memories, elsewhere; False if that failed."""

MIN_BUILT_APART = 5000
"""Memories of a partition whose index is built elsewhere: to begin that takes as long as some thousand of them."""

YIELD_EVERY = 200
"""Records between two pauses for the event loop, so that heartbeats and liveness continue; a long one has its own."""

log = structlog.get_logger()


class PartitionPreparer:
    """Assigned partitions in, their lexical indexes open and complete."""

    def __init__(self, committed: CommittedOffsets, ctx: WorkerContext, build: BuildWords | None = None) -> None:
        """Without `build` large indexes are built here, too."""
        self._build = build
        self._committed = committed
        self._memories = ctx.stores.memories
        self._words = ctx.stores.words
        self._ctx = ctx

    async def prepare(self, partitions: Collection[int]) -> None:
        """Open the lexical index of these partitions; rebuild it if it is not complete."""
        commit, names = self._ctx.commit, self._ctx.topics
        for partition in partitions:
            self._words.open(partition)
        incomplete = sorted(partition for partition in partitions if not self._words.is_complete(partition))
        if incomplete:
            log.info("rebuilding the lexical index from the table", partitions=incomplete)
            await asyncio.gather(*map(self._rebuild, incomplete))
        committed = await self._committed()
        for partition in partitions:
            # Another worker may have been ahead of this database, before its rows were recovered.
            for topic in (names.turns, names.embedded, names.understood, names.changes, names.consolidated):
                applied = max(commit.applied(partition, topic), committed.get((topic, partition), 0))
                commit.set_applied(partition, topic, applied)
            self._ctx.progress.start(partition, commit.applied(partition, names.turns))

    async def _rebuild(self, partition: int) -> None:
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
            if number % YIELD_EVERY == 0 or is_long(whole_text(memory.text, memory.resources)):
                await asyncio.sleep(0)
        self._words.complete(partition)
