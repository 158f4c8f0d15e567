"""Make the writes of a partition durable: events first, then changelogs, then the database.

Enters: rows of tables, and the moment when the events of their record are in Kafka. Leaves: after a commit the rows in
the changelogs, then rows, lexical index and offsets in one transaction of the database. Guaranteed: no row of a memory
is durable before the events of its record. So after a kill a record is either complete, and skipped at its redelivery,
or absent, and handled again.
"""

import asyncio
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial

from streams.backoff import until_available
from streams.observability.metrics import Meters
from streams.partition.database import PartitionDatabase, PartitionDatabases

COMMIT_INTERVAL_S = 0.1
"""Commit interval of a partition, unless a caller waits: acknowledgements do, replies to turns do not."""

MAX_WRITING_S = 1.0
"""Time during which a commit lets new writes begin while it waits for a slow one."""

STORAGE_TIMEOUT_S = 30.0
"""Time limit of retries of a write to the local disk. A full disk may be cleared; a broken one needs a restart."""

SendRow = Callable[[str, int, bytes, bytes | None], Awaitable[Awaitable[int]]]
"""Hands a row to a topic's partition; returns an awaitable of its offset, without a time limit."""


class Writing:
    """Writes to a partition whose events are not yet in Kafka: the next commit waits for them."""

    __slots__ = ("_state",)

    def __init__(self, state: "_State") -> None:
        self._state = state

    def finish(self, sent: Sequence[Awaitable[object]]) -> "asyncio.Future[None]":
        """Let commits continue once these events are in Kafka; return that moment. Call it once."""
        self._state.end_writing()
        return asyncio.ensure_future(self._finish(sent))

    async def _finish(self, sent: Sequence[Awaitable[object]]) -> None:
        try:
            if not self._state.is_open.is_set():
                self._state.flush_events()
            for event in sent:
                await event
        finally:
            self._state.end_publishing()


class _State:
    """The commits of one partition, while its database is open."""

    def __init__(self, database: PartitionDatabase, flush_events: Callable[[], None]) -> None:
        self.database = database
        self.flush_events = flush_events
        self.rows: list[tuple[str, bytes, bytes | None]] = []
        """Rows missing in the changelogs, in the order of their writing: topic, key and value."""
        self.is_open, self.is_written, self.is_published = asyncio.Event(), asyncio.Event(), asyncio.Event()
        """Set while writes may begin; while none is in progress; while all their events are in Kafka."""
        self.committing, self.is_hurried = asyncio.Lock(), asyncio.Event()
        self.began = float("-inf")
        """When the last commit began."""
        self.next: asyncio.Task[None] | None = None
        """The next commit, which has not begun."""
        self._writing = self._publishing = 0
        for event in (self.is_open, self.is_written, self.is_published):
            event.set()

    def begin(self) -> Writing:
        self._writing += 1
        self._publishing += 1
        self.is_written.clear()
        self.is_published.clear()
        return Writing(self)

    def end_writing(self) -> None:
        self._writing -= 1
        if not self._writing:
            self.is_written.set()

    def end_publishing(self) -> None:
        self._publishing -= 1
        if not self._publishing:
            self.is_published.set()


class PartitionCommits:
    def __init__(
        self,
        databases: PartitionDatabases,
        meters: Meters,
        *,
        memories: str,
        send_row: SendRow,
        flush_events: Callable[[], None],
        interval_s: float = COMMIT_INTERVAL_S,
    ) -> None:
        """`memories` is the changelog of memories; `flush_events` writes sent events at once.

        `interval_s` is the time between two commits of a partition that no caller waits for.
        """
        self._interval_s = interval_s
        self._memories = memories
        self._databases = databases
        self._meters = meters
        self._send_row = send_row
        self._flush_events = flush_events
        self._states: dict[int, _State] = {}

    async def begin(self, partition: int) -> Writing:
        """Return the handle for a record's writes and events, after any running commit.

        The caller must finish it. To begin in several partitions, go in the order of their numbers.
        """
        state = self._state(partition)
        while not state.is_open.is_set():
            await state.is_open.wait()
        return state.begin()

    def write(self, partition: int, changelog: str, key: bytes, value: bytes | None) -> None:
        """Note a row written to the database, for its changelog."""
        self._state(partition).rows.append((changelog, key, value))

    def applied(self, partition: int, topic: str) -> int:
        """Return the offset after the last applied record of a topic."""
        return self._state(partition).database.offset(topic) or 0

    def set_applied(self, partition: int, topic: str, next_offset: int) -> None:
        """Count all records before an offset as applied; durable with the next commit."""
        self._state(partition).database.set_offset(topic, next_offset)

    async def commit(self, partitions: Collection[int], *, is_hurried: bool = False) -> None:
        """Make writes to these partitions durable, a commit interval after the last commit or at once.

        Does nothing without writes since then. Raises Unavailable if the disk accepts nothing for `STORAGE_TIMEOUT_S`,
        and errors of writing a row.
        """
        written = [partition for partition in set(partitions) if self._is_written(partition)]
        commits = [self._next(partition, is_hurried=is_hurried) for partition in written]
        if len(commits) == 1:
            await asyncio.shield(commits[0])
        elif commits:
            await asyncio.gather(*map(asyncio.shield, commits))

    def _is_written(self, partition: int) -> bool:
        """True if a partition is here and has uncommitted writes."""
        if (database := self._databases.opened(partition)) is None:
            return False
        state = self._state(partition)
        is_under_way = state.next is not None or state.committing.locked() or not state.is_published.is_set()
        return is_under_way or bool(state.rows) or not database.is_committed

    def _state(self, partition: int) -> _State:
        """Return the state of an open partition; uncommitted writes from before it last left are dropped."""
        state = self._states.get(partition)
        if state is None or state.database is not self._databases.opened(partition):
            state = self._states[partition] = _State(self._databases.at(partition), self._flush_events)
        return state

    def _next(self, partition: int, *, is_hurried: bool) -> "asyncio.Task[None]":
        """Return the next commit of a partition, shared by all that wait for it."""
        state = self._state(partition)
        if is_hurried:
            state.is_hurried.set()
        if state.next is None:
            state.next = asyncio.create_task(self._commit(partition, state))
        return state.next

    async def _commit(self, partition: int, state: _State) -> None:
        async with state.committing:
            loop = asyncio.get_running_loop()
            with suppress(TimeoutError):
                await asyncio.wait_for(state.is_hurried.wait(), max(0.0, state.began + self._interval_s - loop.time()))
            state.began, state.next = loop.time(), None
            state.is_hurried.clear()
            with suppress(TimeoutError):
                # Writes may begin meanwhile: a turn with a hundred items takes a second.
                await asyncio.wait_for(state.is_written.wait(), MAX_WRITING_S)
            state.is_open.clear()
            try:
                self._flush_events()
                await state.is_published.wait()
                store = partial(self._store, partition, state)
                await until_available(store, "storage", self._meters, at_most_s=STORAGE_TIMEOUT_S)
            finally:
                state.is_open.set()

    async def _store(self, partition: int, state: _State) -> None:
        """Write the rows to their changelogs, then commit the database; skip a partition that has left."""
        while state.database is self._databases.opened(partition):
            if not state.rows:
                state.database.commit()
                return
            # Agents that don't call `begin` may write meanwhile. Rows of memories come last: a record whose memory is
            # recovered is not handled again. All are written, in their order, as a kill may leave only the first ones.
            rows, state.rows = state.rows, []
            try:
                for are_last in (False, True):
                    some = [row for row in rows if (row[0] == self._memories) == are_last]
                    sent = [(topic, await self._send_row(topic, partition, key, value)) for topic, key, value in some]
                    for topic, written in sent:
                        state.database.set_offset(topic, max(state.database.offset(topic) or 0, await written + 1))
            except BaseException:
                # No later commit makes them durable without their changelog.
                state.rows[:0] = rows
                raise


# Turns of one boundary are applied in the order of their partition; those of other boundaries may overtake them.
class AppliedOffsets:
    """Applied turns of each partition. Everything before the first waiting one is applied."""

    def __init__(self) -> None:
        self._read: dict[int, int] = {}
        self.starts: Counter[int] = Counter()
        """How often each partition was taken."""
        self._waiting: defaultdict[int, WaitingTurns] = defaultdict(WaitingTurns)
        self._changed: dict[int, asyncio.Event] = defaultdict(asyncio.Event)

    def start(self, partition: int, next_offset: int) -> None:
        """Record that everything before `next_offset` is applied, and that it is read next."""
        self.starts[partition] += 1
        self._read[partition] = next_offset
        self._waiting.pop(partition, None)
        self._notify(partition)

    def leave(self, partition: int) -> None:
        """Record that a partition belongs to another worker."""
        self._read.pop(partition, None)
        self._waiting.pop(partition, None)

    def arrive(self, partition: int, offset: int, boundary: str) -> None:
        """Record that a turn was read and waits. One that is read again comes before all that have waited."""
        if offset < self._read.get(partition, 0):
            self._waiting.pop(partition, None)
        self._waiting[partition].add(offset, boundary)
        self._read[partition] = offset + 1

    def finish(self, partition: int, offset: int) -> None:
        """Record that a turn, and with it every earlier one of its boundary, is applied and visible."""
        self._waiting[partition].remove(offset)
        self._read[partition] = max(offset + 1, self._read.get(partition, 0))
        self._notify(partition)

    def next_offset(self, partition: int, boundary: str | None = None) -> int | None:
        """Return the first unapplied offset; with `boundary`, considering only turns that may be its own.

        None for a partition of another worker.
        """
        read = self._read.get(partition)
        return None if read is None else self._waiting[partition].first(boundary, read)

    def is_applied(self, partition: int, offset: int, boundary: str | None = None) -> bool:
        """True if the offset and everything before it is applied; with `boundary`, only as far as its turns."""
        return (self.next_offset(partition, boundary) or 0) > offset

    async def reached(self, partition: int, offset: int, within: float, boundary: str | None = None) -> bool:
        """Wait at most `within` seconds; return True if `offset` is applied, as in `is_applied`."""
        return await self.until(partition, lambda: self.is_applied(partition, offset, boundary), within)

    async def until(self, partition: int, condition: Callable[[], bool], within: float) -> bool:
        """Wait at most `within` seconds for a condition that applied turns fulfil; return whether it holds."""
        try:
            async with asyncio.timeout(within):
                while not condition():
                    await self._changed[partition].wait()
        except TimeoutError:
            return False
        return True

    def _notify(self, partition: int) -> None:
        self._changed.pop(partition, asyncio.Event()).set()


class WaitingTurns:
    """Offsets of one partition that are read but not applied, in order. All operations take constant time."""

    def __init__(self) -> None:
        self._boundary_of: OrderedDict[int, str] = OrderedDict()
        self._by_boundary: dict[str, deque[int]] = {}

    def add(self, offset: int, boundary: str) -> None:
        """Append an offset, higher than all before."""
        self._boundary_of[offset] = boundary
        self._by_boundary.setdefault(boundary, deque()).append(offset)

    def remove(self, offset: int) -> None:
        """Remove an offset, the first of its boundary; ignore one that does not wait."""
        boundary = self._boundary_of.pop(offset, None)
        if boundary is not None:
            line = self._by_boundary[boundary]
            line.popleft()
            if not line:
                del self._by_boundary[boundary]

    def first(self, boundary: str | None, otherwise: int) -> int:
        if boundary is not None:
            line = self._by_boundary.get(boundary)
            return line[0] if line else otherwise
        return next(iter(self._boundary_of), otherwise)
