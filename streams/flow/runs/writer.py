"""Write run records beside the answers.

Guaranteed: no caller waits for it; records that Kafka has not taken yet are bounded, the others are dropped and
counted.
"""

import asyncio
from contextvars import Context

import structlog

from schemas.messages.records import Outgoing
from streams.flow.publisher import Publisher
from streams.observability.metrics import Meters

MAX_UNWRITTEN = 1000
"""Run records that wait for Kafka, some 2 MB."""

log = structlog.get_logger()


class RunWriter:
    """Belongs to one event loop."""

    def __init__(self, publisher: Publisher, meters: Meters, limit: int = MAX_UNWRITTEN) -> None:
        self._publisher = publisher
        self._meters = meters
        self._limit = limit
        self._writing: set[asyncio.Task[None]] = set()

    def write(self, out: Outgoing) -> None:
        """Write a record in the background, or drop it."""
        if len(self._writing) >= self._limit:
            self._meters.run_dropped()
            return
        # Of no request: it would keep the request's context until Kafka is back.
        task = asyncio.get_running_loop().create_task(self._write(out), context=Context())
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, out: Outgoing) -> None:
        try:
            await (await self._publisher.send(out))
        except Exception as problem:
            self._meters.run_dropped()
            log.warning("a run record was not written", problem=repr(problem))
