"""One row of the matrix: a load, a fault in the middle of it, and what came of it."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

from modestream_client import MemoryClient
from modestream_client.calls import MemoryCalls
from modestream_client.http.client import HttpMemoryClient

from bench.faults.load import Load, say_over_http, say_over_kafka
from bench.faults.probe import MIN_DURING_S, Probe
from bench.faults.world import World

WARM_UP_S = 2.0
"""Of the load, before questions count."""

BEFORE_S = 8.0
"""How long questions are measured before a fault, at least."""

AFTER_S = 1.0
"""Turns of so long after a fault count for the time until all is well: some of what a killed process missed."""

Act = Callable[[World, Load], Awaitable[str]]
"""Makes a fault and ends it; returns a remark."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and the system that it meets."""

    name: str
    world: Callable[[], AbstractAsyncContextManager[World]]
    act: Act
    over_http: bool = False
    """Turns and questions go through the gateway."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is published around each fault."""

    turns: int
    per_second: float


@dataclass(frozen=True, slots=True)
class Row:
    """What one fault did."""

    fault: str
    turns: int
    found: int
    doubled: int
    retried: int
    """Writes that were not acknowledged and were sent again."""
    well_s: float
    before_ms: float
    during_ms: float
    load: float
    """Load average of the machine in the end: others may work beside."""
    remark: str

    @property
    def is_right(self) -> bool:
        """True if nothing was lost or doubled."""
        return self.found == self.turns and self.doubled == 0

    def as_json(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


async def measure(world: World, fault: Fault, size: Size, name: str) -> Row:
    """Run one fault in a running system, with users of this name."""
    async with _connected(world, over_http=fault.over_http) as client:
        say = say_over_http(client) if fault.over_http else say_over_kafka(client)
        load, probe = Load(client, say, size.per_second, name), Probe(client, f"bob-{name}")
        await probe.prepare()
        began = time.perf_counter()
        publishing = asyncio.create_task(load.publish(size.turns))
        probing = asyncio.create_task(probe.run())
        try:
            await asyncio.sleep(max(BEFORE_S + WARM_UP_S, size.turns / size.per_second / 3))
            faulted = time.perf_counter()
            remark = await fault.act(world, load)
            await asyncio.sleep(AFTER_S)
            await load.until_well()
            well = time.perf_counter()
            await asyncio.sleep(max(0.0, faulted + MIN_DURING_S - well))
            load.end()
            await publishing
            await load.until_well()
            probe.end()
            await probing
        finally:
            publishing.cancel()
            probing.cancel()
        counted = await load.counted()
        during = probe.p95_ms(faulted, max(well, faulted + MIN_DURING_S))
        return Row(
            fault.name,
            counted.turns,
            counted.found,
            counted.doubled,
            load.retried,
            round(well - faulted, 1),
            round(probe.p95_ms(began + WARM_UP_S, faulted)),
            round(during),
            round(os.getloadavg()[0], 1),
            remark,
        )


@asynccontextmanager
async def _connected(world: World, *, over_http: bool) -> AsyncIterator[MemoryCalls]:
    if over_http:
        async with HttpMemoryClient(world.url, timeout=30) as http:
            yield http
    else:
        async with MemoryClient(world.bootstrap, timeout=30) as client:
            yield client
