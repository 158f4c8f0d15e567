"""Schedule consolidations: trigger one scope after another, if it has new turns.

Writes only triggers, as a client may; the last run is read from the history that runs store themselves.
"""

import asyncio
from collections import defaultdict
from datetime import timedelta

import orjson
import structlog

from agents.rules.access.grants import PRINCIPAL_HEADER
from agents.rules.consolidation.distillation import ScopeTurns, is_consolidation_due
from schemas.messages.records import Outgoing
from schemas.state.policies import OPERATOR
from streams.flow.worker_context import WorkerContext
from streams.wire.partitioning import partition_of

log = structlog.get_logger()

AS_OPERATOR = ((PRINCIPAL_HEADER, OPERATOR.encode()),)

YIELD_EVERY = 200
"""Records between two pauses for the event loop."""

CHECKS_PER_INTERVAL = 10
"""Checks within the interval between two runs: a scope is late by a tenth of the interval at most."""

MAX_RUN_WAIT_S = 900.0
"""Maximum wait for a run before the next scope is triggered."""

RUN_END_POLL_INTERVAL_S = 0.5
"""Between two checks whether a run is over."""


class ConsolidationScheduler:
    """Triggers the consolidation of every scope that is due."""

    def __init__(self, every: timedelta, ctx: WorkerContext) -> None:
        self._every = every
        self._ctx = ctx

    async def run(self) -> None:
        """Trigger due scopes until cancelled."""
        while True:
            await asyncio.sleep(self._every.total_seconds() / CHECKS_PER_INTERVAL)
            try:
                await self.look()
            except Exception:
                # Partitions may leave while records are read: the next check covers the rest.
                log.exception("looking for due consolidations failed")

    async def look(self) -> None:
        """Trigger due scopes, each when the previous run is over."""
        scopes: defaultdict[tuple[tuple[str, str], ...], ScopeTurns] = defaultdict(ScopeTurns)
        for number, memory in enumerate(self._ctx.stores.memories.all()):
            if memory.origin == "said" and memory.superseded_by is None:
                scopes[tuple(sorted(memory.scope.items()))].add(memory)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        for turns in list(scopes.values()):
            partition = partition_of(turns.boundary.encode(), self._ctx.partitions)
            runs = self._ctx.consolidations.get(partition, turns.scope)
            if is_consolidation_due(turns, runs, self._ctx.clock.now(), self._every):
                value = orjson.dumps({"schema": "consolidate.v1", "scope": dict(turns.scope), "mode": None})
                out = Outgoing(self._ctx.topics.consolidate, turns.boundary.encode(), value, AS_OPERATOR)
                await (await self._ctx.publisher.send(out))
                loop = asyncio.get_running_loop()
                wait_until = loop.time() + MAX_RUN_WAIT_S
                while loop.time() < wait_until and not self._is_over(partition, turns):  # noqa: ASYNC110 - no event tells
                    await asyncio.sleep(RUN_END_POLL_INTERVAL_S)

    def _is_over(self, partition: int, turns: ScopeTurns) -> bool:
        runs = self._ctx.consolidations.get(partition, turns.scope).runs
        begun = bool(runs) and runs[-1].until > turns.newest
        return begun and not self._ctx.jobs.under_way(turns.boundary)
