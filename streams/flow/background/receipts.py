"""Checks for remains of forgotten memories, and reports on the topic `receipts`.

Enters: receipts that say `hidden`. Leaves: the same that say `erased`, with what was looked at. A memory is looked for
in the table, in the lexical index, in every collection of vectors, and in the archive of turns; where logs are erased
by a time, also in the logs: those that are cut must begin behind what was there, those that are compacted must have
nothing before that which a later record replaces. Guaranteed: whatever is killed, a receipt says `erased` only after
all of it was looked at, and says so in the end.
"""

import asyncio
from collections.abc import Callable, Collection
from datetime import timedelta
from functools import partial
from typing import Protocol

import structlog

from agents.ports.indexes import VectorIndexes
from schemas.failures import Unavailable
from schemas.messages.published import LOOKED_AT, Receipt, ReceiptRow
from schemas.state.modes import VectorSpace
from streams.batching import batches
from streams.flow.publisher import await_all
from streams.flow.steps.apply_changes import ERASED, HIDDEN, PAGES, receipt_out
from streams.flow.stores import ReceiptStore
from streams.flow.worker_context import WorkerContext
from streams.topics import ERASED_BY_QUARTERS

PASS_INTERVAL_S = 2.0
"""Interval between checks: forgotten data disappears within seconds, unless logs are erased on a schedule."""

LOG_INTERVAL_S = 60.0
"""The pause between two looks at logs: of compacted ones all records are read."""

PAGES_AT_ONCE = 100
"""Pages whose turns are looked for in the archive at a time: each look reads it backwards from its end."""

KEPT = timedelta(days=1)
"""How long a receipt that says `erased` stays in the table: its command may be delivered again for so long."""

log = structlog.get_logger()


class ForgottenLogs(Protocol):
    """The logs of a partition that may have texts of forgotten memories. Calls raise Unavailable."""

    async def ends(self, partition: int) -> dict[str, int]:
        """Return the ends of all of them, by topic and partition."""

    async def erased_until(self, partition: int) -> dict[str, int]:
        """Return likewise the offsets before which nothing is left that was replaced, deleted, or is too old."""

    async def archived_texts(self, partition: int, memory_ids: Collection[str]) -> set[str]:
        """Return the turns whose text the archive has."""


class CheckReceipts:
    """Looks after the receipts of one worker."""

    def __init__(
        self, table: ReceiptStore, vectors: VectorIndexes, logs: ForgottenLogs, ctx: WorkerContext, *, erases_logs: bool
    ) -> None:
        """`erases_logs`: logs are erased by a time."""
        self._table = table
        self._vectors = vectors
        self._logs = logs
        self._ctx = ctx
        self._erases_logs = erases_logs
        self._looked_at: dict[tuple[str, int], float] = {}

    async def run(self) -> None:
        while True:
            for partition in self._ctx.served_partitions():
                try:
                    await self.look(partition)
                except Unavailable as problem:
                    log.warning("what was forgotten could not be looked for", problem=str(problem))
                except Exception:
                    # The partition may leave meanwhile: its new owner goes on.
                    log.exception("looking for what was forgotten failed")
            await asyncio.sleep(PASS_INTERVAL_S)

    async def look(self, partition: int) -> None:
        """Look for remains of the memories in a partition's receipts. Raises Unavailable."""
        if self._is_due("old", partition):
            before = self._ctx.clock.now() - KEPT
            old = [
                key
                for key in self._table.keys(partition, ERASED)
                if (at := self._table.get(partition, key).at) is None or at < before
            ]
            if old:
                await self._write(partition, partial(self._delete, partition, old))
        until: dict[str, int] | None = None
        is_log_time = None
        for key in self._table.keys(partition, HIDDEN):
            row = self._table.get(partition, key)
            if row.receipt is None:
                continue
            if self._erases_logs and row.log_ends is None:
                await self._write(partition, partial(self._put_ends, partition, key, await self._logs.ends(partition)))
                continue
            if row.log_ends is not None:
                is_log_time = self._is_due("logs", partition) if is_log_time is None else is_log_time
                if not is_log_time or not self._may_be_erased(row, row.receipt):
                    continue
                until = await self._logs.erased_until(partition) if until is None else until
                if any(until.get(name, 0) < end for name, end in row.log_ends.items()):
                    continue
            await self._look_for(partition, row, row.receipt)

    def _put_ends(self, partition: int, key: str, ends: dict[str, int]) -> None:
        # Read again: it is another one by now if the change was delivered again.
        row = self._table.get(partition, key)
        self._table.put(partition, key, row.model_copy(update={"log_ends": ends}))

    def _may_be_erased(self, row: ReceiptRow, receipt: Receipt) -> bool:
        """True once a quarter of the time of an erasure is over: no log is cut or compacted before."""
        if receipt.erase_by is None or row.at is None:
            return True
        return self._ctx.clock.now() >= row.at + (receipt.erase_by - receipt.requested_at) / ERASED_BY_QUARTERS

    async def _look_for(self, partition: int, row: ReceiptRow, receipt: Receipt) -> None:
        pages = self._table.keys(partition, f"{PAGES}{receipt.receipt_id}/")
        # The key of a file ends with the memory that brought it.
        with_files = {key.rpartition("/")[2] for key in self._ctx.stores.files.removals(partition)}
        turns = set[str]()
        for some in batches(pages, PAGES_AT_ONCE):
            turn_ids: list[str] = []
            for key in some:
                page = self._table.get(partition, key)
                turn_ids += page.turn_ids
                if not with_files.isdisjoint(page.turn_ids) or await self._is_left(partition, row, page):
                    return
            if turn_ids and await self._logs.archived_texts(partition, turn_ids):
                return
            turns.update(turn_ids)
        at, count = self._ctx.clock.now(), receipt.forgotten
        in_logs = None if row.log_ends is None else count
        looked_at = {**dict.fromkeys(LOOKED_AT, count), "archive": len(turns), "log_segments": in_logs}
        erased = receipt.model_copy(update={"state": "erased", "erased_at": at, "looked_at": looked_at})
        # Before the rows: a killed worker looks again, and says it again.
        await await_all([await self._ctx.publisher.send(receipt_out(self._ctx.topics.receipts, erased))])

        def write() -> None:
            self._delete(partition, (*pages, HIDDEN + receipt.receipt_id))
            self._table.put(partition, ERASED + receipt.receipt_id, ReceiptRow(receipt=erased, at=at))

        await self._write(partition, write)

    async def _is_left(self, partition: int, row: ReceiptRow, page: ReceiptRow) -> bool:
        """True if anything is found of a page. An item that was said again since is another one under the same id."""
        memories, words = self._ctx.stores.memories, self._ctx.stores.words
        wanted = []
        for memory_id in (*page.turn_ids, *page.derived_ids):
            memory = memories.get(partition, memory_id)
            if memory is None:
                if words.has(partition, memory_id):
                    return True
                wanted.append(memory_id)
            elif row.turns_before is None or memory.source < row.turns_before:
                return True
        index = self._vectors.at(partition)
        for name, fingerprint in (await index.spaces()).items() if wanted else ():
            if await index.hashes(VectorSpace.held_by(name, fingerprint), wanted):
                return True
        return False

    def _delete(self, partition: int, keys: Collection[str]) -> None:
        for key in keys:
            self._table.delete(partition, key)

    async def _write(self, partition: int, write: Callable[[], object]) -> None:
        writing = await self._ctx.commit.begin(partition)
        try:
            write()
        finally:
            finishing = writing.finish([])
        await self._ctx.commit.commit([partition])
        await finishing

    def _is_due(self, what: str, partition: int) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._looked_at.get((what, partition), float("-inf")) < LOG_INTERVAL_S:
            return False
        self._looked_at[what, partition] = now
        return True
