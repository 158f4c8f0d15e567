"""Size the entries of memories: their lines in the prompt, counted in tokens, whole or as an excerpt.

Texts are read, cut and counted in batches, with pauses in between; only one batch is in memory at a time.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Sequence
from datetime import datetime

from agents.ports.models import TokenCounter
from agents.rules.context.formats import Entry, PromptFormat
from agents.rules.context.packing import SizedEntry
from schemas.state.memories import Memory

SLICE_S = 0.004

YIELDING_S = 0.1
"""Seconds of work that only let other events run, as nearly all contexts take less. A longer one leaves half of the
event loop's time to others, as far as they have work."""

IDLE_PASS_S = 0.0005
"""A pass of the event loop that takes less had no work for others."""


class Pauses:
    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._worked = 0.0

    async def pause_if_due(self) -> None:
        """Let other events run where the slice is used up; called between two pieces of work."""
        worked = time.perf_counter() - self._began
        if worked < SLICE_S:
            return
        self._worked += worked
        passed, end = time.perf_counter(), time.perf_counter() + (worked if self._worked > YIELDING_S else 0)
        while True:
            # Not a sleep of this length: on an idle event loop it would double the time of a context.
            await asyncio.sleep(0)
            before, passed = passed, time.perf_counter()
            if passed >= end or passed - before < IDLE_PASS_S:
                break
        self.begin()

    def begin(self) -> None:
        """Begin the next slice, after awaiting something else."""
        self._began = time.perf_counter()


BATCH_CHARS, BATCH_MEMORIES = 65_536, 32
"""Texts that are read and counted together: two of the longest turns, or many short ones."""

Excerpt = Callable[[SizedEntry], str | None]
"""Returns the text to show instead of the whole one; None to show the whole."""

Passages = Callable[[Memory], str | None]
"""Returns the passages of a long text that answer; None to show the whole."""

ChangedAt = Callable[[Memory], datetime | None]
"""Returns the time at which a later statement replaced one of a memory; None if all of it still holds."""


class EntrySizer:
    """Memories in, their entries out; each is counted once."""

    def __init__(
        self,
        prompt_format: PromptFormat,
        tokens: TokenCounter,
        excerpt: Excerpt,
        pauses: Pauses,
        changed_at: ChangedAt,
        passages: Passages = lambda _: None,
    ) -> None:
        """An excerpt is shown where it takes fewer tokens than the whole.

        Where there are passages, the whole is not counted.
        """
        self._passages = passages
        self._changed_at = changed_at
        self._format = prompt_format
        self._tokens = tokens
        self._excerpt = excerpt
        self._pauses = pauses
        self._sized: dict[str, SizedEntry] = {}

    def known(self, memory_id: str) -> SizedEntry | None:
        """Return the entry of a memory that was counted before."""
        return self._sized.get(memory_id)

    async def sized(self, memories: AsyncIterable[Memory]) -> AsyncGenerator[SizedEntry, None]:
        """Yield the entries of memories in order, lazily."""
        async for batch in _batches(memories):
            uncounted = [memory for memory in batch if memory.memory_id not in self._sized]
            whole = await self._size(
                [(memory, Entry.of(memory, self._passages(memory), self._changed_at(memory))) for memory in uncounted]
            )
            cut: list[tuple[Memory, Entry]] = []
            for entry in whole:
                if not entry.entry.excerpt and (text := self._excerpt(entry)) is not None:
                    cut.append((entry.memory, entry.entry._replace(text=text, excerpt=True)))
                await self._pauses.pause_if_due()
            self._sized.update((entry.memory.memory_id, entry) for entry in whole)
            for shorter in await self._size(cut):
                whole_entry = self._sized[shorter.memory.memory_id]
                self._sized[shorter.memory.memory_id] = min(shorter, whole_entry, key=lambda entry: entry.tokens)
            for memory in batch:
                yield self._sized[memory.memory_id]
                await self._pauses.pause_if_due()

    async def _size(self, entries: Sequence[tuple[Memory, Entry]]) -> list[SizedEntry]:
        if not entries:
            return []
        lines = [self._format.line(entry) for _, entry in entries]
        days = {self._format.day(entry): 0 for _, entry in entries}
        await self._pauses.pause_if_due()
        counts = await self._tokens.count([*lines, *days])
        days.update(zip(days, counts[len(lines) :], strict=True))
        return [
            SizedEntry(memory, entry, count, day := self._format.day(entry), days[day])
            for (memory, entry), count in zip(entries, counts, strict=False)
        ]


def text_chars(memory: Memory) -> int:
    return len(memory.text) + sum(len(resource.text or "") for resource in memory.resources)


async def _batches(memories: AsyncIterable[Memory]) -> AsyncIterator[list[Memory]]:
    """Yield the memories in their order, each list up to the first that reaches a limit."""
    batch: list[Memory] = []
    chars = 0
    async for memory in memories:
        batch.append(memory)
        chars += text_chars(memory)
        if chars >= BATCH_CHARS or len(batch) == BATCH_MEMORIES:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch
