"""The workers of one data directory, as their supervisor starts and watches them."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from streams.up.broker import STOP_TIMEOUT_S
from streams.up.child import Child
from streams.up.layout import Layout
from streams.up.ownership import FIRST_WORKER
from streams.up.replacement import Replacement
from streams.up.supervised import LivenessMonitor, ServiceSpec, fetch, probe_liveness

SEVERAL_WORKERS = {
    # Load a model once, and let the supervisor serve the metrics of all at the address of the settings.
    "MODESTREAM_SHARED_EMBEDDERS": "true",
    "MODESTREAM_METRICS_HOST": "127.0.0.1",
    "MODESTREAM_METRICS_PORT": "0",
}
"""Settings of each of several workers."""

ALLOCATOR_VARIABLE, HUGE_PAGES = "GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"
"""The C library asks the kernel for pages of 2 MB, for the weights and columns of a worker and its embedder. Other C
libraries ignore it (decision 32)."""


@dataclass(frozen=True, slots=True)
class ReportedStatus:
    partitions: frozenset[int]
    recovering: bool


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    name: str
    port_file: Path
    environment: Mapping[str, str]

    async def status(self) -> ReportedStatus | None:
        """Return its status; None if it does not answer."""
        health = await self.health()
        if not isinstance(health, dict) or not isinstance(health.get("partitions"), list):
            return None
        return ReportedStatus(frozenset(health["partitions"]), bool(health.get("recovering")))

    async def health(self) -> Any:
        """Return its page `/health`; None if it does not answer."""
        answer = await fetch(self.port_file, "/health")
        with suppress(ValueError):
            return None if answer is None else orjson.loads(answer[1])
        return None

    async def metrics(self) -> str | None:
        """Return its page of metrics; None if it does not answer."""
        answer = await fetch(self.port_file, "/metrics")
        return None if answer is None else answer[1].decode()


def worker_processes(layout: Layout, ids: Sequence[str | None]) -> list[WorkerProcess]:
    """Return the workers with these ids; None is the id of the file in the data directory."""
    shared = SEVERAL_WORKERS if len(ids) > 1 else {}
    return [
        WorkerProcess(
            FIRST_WORKER if number == 1 else f"{FIRST_WORKER}-{number}",
            layout.metrics_port(worker_id),
            {**shared, **({} if worker_id is None else {"MODESTREAM_WORKER_ID": worker_id})},
        )
        for number, worker_id in enumerate(ids, 1)
    ]


def worker_service(
    layout: Layout,
    worker: WorkerProcess,
    command: Sequence[str],
    environment: Mapping[str, str],
    liveness_interval_s: float,
) -> ServiceSpec:
    """Describe a worker, probed every `liveness_interval_s` seconds; `environment` is that of all workers."""
    own = {
        # Unless the operator has tuned it.
        ALLOCATOR_VARIABLE: os.environ.get(ALLOCATOR_VARIABLE, HUGE_PAGES),
        **environment,
        **worker.environment,
        "MODESTREAM_DATA_DIR": str(layout.data_dir),
    }

    async def start() -> Child:
        return await Child.start(layout, worker.name, command, own)

    async def start_replacement() -> Replacement:
        return await Replacement.start(layout, worker.name, command, own)

    def before_start() -> None:
        # Remove the port of an earlier worker, which may belong to another process by now.
        worker.port_file.unlink(missing_ok=True)

    async def watch(_: Child) -> str:
        began, liveness = time.monotonic(), LivenessMonitor()
        while True:
            await asyncio.sleep(liveness_interval_s)
            answer = await probe_liveness(worker.port_file)
            if liveness.is_dead(answer, time.monotonic() - began):
                return f"it is {answer}"

    log = layout.log(worker.name)
    return ServiceSpec(worker.name, log, STOP_TIMEOUT_S, start, watch, start_replacement, before_start)
