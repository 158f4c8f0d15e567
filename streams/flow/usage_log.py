"""How each user's modes are used, by week: counted in memory, stored every few seconds.

Guaranteed: a record is never counted twice, also one that is redelivered after a kill; a user has one row, bounded by
`MAX_USAGE_WEEKS` and `MAX_USAGE_MODES`. The end of a worker loses the counts of at most `STORE_INTERVAL_S`.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

import structlog

from agents.ports.clock import Clock
from agents.rules.interaction.stability import week_of
from schemas.failures import Unavailable
from schemas.messages.published import Rating
from schemas.messages.records import Record
from schemas.moments import moment_of
from schemas.state.modes import ModeUsage, UsageHistory
from streams.flow.stores import Table
from streams.partition.commit import PartitionCommits

log = structlog.get_logger()

STORE_INTERVAL_S = 10.0
"""Between two writes of a user's row: a write costs more than the question that is counted."""

MAX_WAITING_USERS = 1000
"""Users with counts that are not stored yet, beyond which all are stored at once: some 10 MB."""


class UsageLog:
    """The table `usage`, with what is counted and not stored yet."""

    def __init__(self, table: Table[str, UsageHistory], commit: PartitionCommits, clock: Clock) -> None:
        self._table = table
        self._commit = commit
        self._clock = clock
        self._waiting: dict[tuple[int, str], tuple[UsageHistory, UsageHistory]] = {}
        """By partition and user, the stored history and the current one."""
        self._is_full = asyncio.Event()

    def of(self, partition: int, boundary: str) -> UsageHistory:
        """Return a user's history, including what is not stored yet."""
        waiting = self._waiting.get((partition, boundary))
        return self._table.get(partition, boundary) if waiting is None else waiting[1]

    def asked(self, record: Record, boundary: str, modes: Sequence[str]) -> None:
        """Count a question that has searched these modes."""
        is_cross = int(len(modes) > 1)
        self._count(record, boundary, dict.fromkeys(modes, ModeUsage(questions=1, cross_mode_questions=is_cross)))

    def corrected(self, record: Record, boundary: str, memories: Mapping[str, int]) -> None:
        """Count memories that a command moves out of modes, by mode."""
        self._count(record, boundary, {mode: ModeUsage(corrections=moved) for mode, moved in memories.items()})

    def rated(self, record: Record, boundary: str, rating: Rating) -> None:
        """Count a rating, for each mode of its context."""
        usage = ModeUsage(useful=len(rating.useful), not_useful=len(rating.not_useful))
        modes = [rating.mode] if isinstance(rating.mode, str) else rating.mode or []
        self._count(record, boundary, dict.fromkeys(modes, usage))

    def forget(self, partition: int, boundary: str) -> None:
        """Delete a user's history; the write belongs to the handling of the command that forgets the user."""
        self._waiting.pop((partition, boundary), None)
        self._table.put(partition, boundary, UsageHistory())

    async def store(self, partitions: Iterable[int]) -> None:
        """Store what these partitions have counted; drop that of all others, which are another worker's."""
        self._is_full.clear()
        waiting, self._waiting = self._waiting, {}
        here = set(partitions)
        for (partition, boundary), (_, history) in waiting.items():
            if partition in here:
                self._table.put(partition, boundary, history)
        await self._commit.commit({partition for partition, _ in waiting} & here)

    async def run(self, served_partitions: Callable[[], Sequence[int]]) -> None:
        """Store every `STORE_INTERVAL_S`, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(STORE_INTERVAL_S):
                    await self._is_full.wait()
            except TimeoutError:
                pass
            try:
                await self.store(served_partitions())
            except (KeyError, Unavailable) as problem:
                log.warning("usage of modes could not be stored", problem=repr(problem))

    def _count(self, record: Record, boundary: str, modes: Mapping[str, ModeUsage]) -> None:
        key = (record.partition, boundary)
        if not (waiting := self._waiting.get(key)):
            history = self._table.get(*key)
            waiting = history, history
        stored, current = waiting
        # Compared with the stored history: of questions that run at the same time the later one may end first.
        if modes and not stored.has(record.topic, record.offset):
            # By the record: commands that a migration copies are counted in their own weeks.
            week = week_of(min(self._clock.now(), moment_of(record.timestamp_ms)))
            self._waiting[key] = stored, current.with_record(record.topic, record.offset, week, modes)
            if len(self._waiting) > MAX_WAITING_USERS:
                self._is_full.set()
