"""The clock of one process jumps, for a while, and jumps back.

The machine's clock can't be set, so libfaketime (the `.so` of its package on PyPI, x86-64 alone) adds an offset to what
the process reads of the time of day. Monotonic clocks stay as they are, as they do when a clock is set.
"""

import asyncio
import platform
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from bench.faults.cluster import Cluster, KeptProcess, new_cluster
from bench.faults.load import Load
from bench.faults.row import Act, Fault
from bench.faults.world import World
from streams.up.layout import free_port
from streams.up.supervised import answers_http

JUMP_S = 3700
"""An hour and a bit: Kafka refuses records whose timestamp is more than an hour ahead of its own clock."""

LASTS_S = 20.0
"""How long the clock is wrong."""

LIBRARY = Path("vendor/libfaketime/src/libfaketime.so.1")
GATEWAY = (sys.executable, "-m", "streams", "gateway")
POLL_S = 0.2


def faketime_library() -> Path | None:
    """Return the library that is preloaded, or None where it is not installed, or another platform's."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return None
    spec = find_spec("libfaketime")
    found = [] if spec is None else [Path(folder) / LIBRARY for folder in spec.submodule_search_locations or ()]
    return next((path for path in found if path.exists()), None)


class ClockCluster(Cluster):
    """A broker, a worker and a gateway, the latter two with a clock that can be set."""

    gateway: KeptProcess
    gateway_port: int

    @property
    def url(self) -> str:
        """The gateway's address."""
        return f"http://127.0.0.1:{self.gateway_port}"

    def own_settings(self, name: str) -> dict[str, str]:
        """Return the settings of a worker, and those of its clock."""
        return super().own_settings(name) | self._clock(name)

    def set_clock(self, process: str, ahead_s: int) -> None:
        """Set the clock of `worker` or `gateway` so many seconds ahead; it is read once a second."""
        self._offset(process).write_text(f"{ahead_s:+d}\n")

    async def start_gateway(self) -> None:
        """Start it, and wait until it serves."""
        self.gateway_port = free_port()
        settings = {
            "MODESTREAM_BROKER": "kafka://" + self.bootstrap,
            "MODESTREAM_GATEWAY_BIND": f"127.0.0.1:{self.gateway_port}",
            **self._clock("gateway"),
        }
        self.gateway = KeptProcess(GATEWAY, self.directory / "gateway.log", settings)
        await self.gateway.start()
        while not await answers_http(self.gateway_port, "/ready"):  # noqa: ASYNC110 - it is polled
            await asyncio.sleep(POLL_S)

    def _offset(self, process: str) -> Path:
        return self.directory / f"{process}.clock"

    def _clock(self, process: str) -> dict[str, str]:
        self.set_clock(process, 0)
        return {
            "LD_PRELOAD": str(faketime_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._offset(process)),
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
            # Its own guess has threads wait some 50 ms for the interpreter.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
            "NO_FAKE_STAT": "1",
        }


@asynccontextmanager
async def new_clocks() -> AsyncIterator[ClockCluster]:
    """Run a broker, a worker and a gateway until the block ends."""
    async with new_cluster(kind=ClockCluster) as cluster:
        try:
            await cluster.start_gateway()
            yield cluster
        finally:
            with suppress(AttributeError):
                await cluster.gateway.hold()


def jumps(process: str, seconds: int) -> Act:
    """Return the fault of a clock that is set by so many seconds, and set right again."""

    async def act(world: World, _load: Load) -> str:
        assert isinstance(world, ClockCluster)
        world.set_clock(process, seconds)
        await asyncio.sleep(LASTS_S)
        world.set_clock(process, 0)
        return ""

    return act


CLOCK_FAULTS = [
    Fault(
        f"{process}: clock an hour {where} for {LASTS_S:g} s", new_clocks, jumps(process, seconds), over_http=over_http
    )
    for process, over_http in (("worker", False), ("gateway", True))
    for where, seconds in (("ahead", JUMP_S), ("behind", -JUMP_S))
]
