"""The ends of the turns log by partition, requested once for many: they tell offsets that were never given."""

import asyncio
from collections import defaultdict

from schemas.failures import Unavailable
from streams.flow.support.turns_log import TurnsLog


class LogEnds:
    """Knows how far the log reached when it was last asked."""

    def __init__(self, log: TurnsLog) -> None:
        self._log = log
        self._ends: dict[int, int] = {}
        self._asked_at: dict[int, float] = {}
        self._asking: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def is_beyond(self, partition: int, offset: int) -> bool:
        """True if the log did not reach this offset at a time after the call. False if Kafka does not answer.

        Many calls share one request to the broker, but none an answer to a request from before it: an offset that was
        given just now is never beyond.
        """
        called_at = asyncio.get_running_loop().time()
        if offset < self._ends.get(partition, 0):
            return False
        async with self._asking[partition]:
            if self._asked_at.get(partition, -1.0) < called_at:
                asked_at = asyncio.get_running_loop().time()
                try:
                    self._ends[partition] = await self._log.end(partition)
                except Unavailable:
                    return False
                self._asked_at[partition] = asked_at
        return offset >= self._ends[partition]
