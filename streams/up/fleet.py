"""The workers of one data directory under a supervisor: supervision, rolling restarts, metrics on one page."""

import asyncio
import re
import sys
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import orjson
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from streams.adapters.embedding.process.embedder_process import end_shared_processes
from streams.settings import shared_embedder_dir
from streams.up.child import rotate_log
from streams.up.console import PrintLine
from streams.up.layout import Layout
from streams.up.supervised import LIVENESS_INTERVAL_S, SupervisedChild
from streams.up.workers import ReportedStatus, WorkerProcess, worker_processes, worker_service

# Monitoring of several workers over HTTP, at one address: `/metrics` of all, `/live` of the supervisor, `/health`.
#
# `/metrics` is one page of all workers' pages in Prometheus' text format, each series with the label `worker`.


async def serve_fleet(workers: Sequence[WorkerProcess], host: str, port: int, port_file: Path) -> None:
    """Serve until cancelled; the port is written to a file. Raises OSError if the port is taken."""
    pages = _Pages(workers)
    application = web.Application()
    application.router.add_get("/metrics", pages.metrics)
    application.router.add_get("/live", pages.live)
    application.router.add_get("/health", pages.health)
    runner = web.AppRunner(application, access_log=None)
    try:
        await runner.setup()
        await web.TCPSite(runner, host, port).start()
        port_file.write_text(str(runner.addresses[0][1]), encoding="ascii")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


class _Pages:
    def __init__(self, workers: Sequence[WorkerProcess]) -> None:
        self._workers = {str(number): worker for number, worker in enumerate(workers, 1)}

    async def metrics(self, _: web.Request) -> web.Response:
        pages = await asyncio.gather(*(worker.metrics() for worker in self._workers.values()))
        page = merge_pages(dict(zip(self._workers, pages, strict=True)))
        return web.Response(body=page.encode(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def live(self, _: web.Request) -> web.Response:
        # This process restarts stuck workers itself: it need not be restarted for them.
        return web.json_response({"alive": True})

    async def health(self, _: web.Request) -> web.Response:
        answers = await asyncio.gather(*(worker.health() for worker in self._workers.values()))
        return web.json_response({"workers": dict(zip(self._workers, answers, strict=True))})


SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S.*)$")
"""Name, labels and value of a sample."""

WORKER_UP = "modestream_worker_up"


def merge_pages(pages: Mapping[str, str | None]) -> str:
    """Merge the pages by worker; None if the worker does not answer: `modestream_worker_up` shows it."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for worker, page in pages.items():
        family = ""
        for line in (page or "").splitlines():
            if line.startswith("#"):
                family = line.split(" ", 3)[2]
                if len(heads.setdefault(family, [])) < 2 and line not in heads[family]:
                    heads[family].append(line)
            elif (sample := SAMPLE.match(line)) is not None:
                name, labels, value = sample.groups()
                own = f'worker="{worker}"' + (f",{labels}" if labels else "")
                samples.setdefault(family, []).append(f"{name}{{{own}}} {value}")
    families = (line for family, head in heads.items() for line in (*head, *samples.get(family, ())))
    answering = (
        f"# HELP {WORKER_UP} 1 while the worker of a supervisor of several answers, else 0.",
        f"# TYPE {WORKER_UP} gauge",
        *(f'{WORKER_UP}{{worker="{worker}"}} {int(page is not None)}.0' for worker, page in pages.items()),
    )
    return "\n".join((*families, *answering)) + "\n"


BACK_TIMEOUT_S = 300.0
"""Time limit for a worker to serve again: a start with its tables takes seconds, a recovery longer."""

POLL_INTERVAL_S = 0.1


class RestartableWorker(Protocol):
    name: str

    async def prepare(self) -> None:
        """Load its replacement."""

    async def restart(self) -> None:
        """End it cleanly; its replacement starts at once."""

    async def status(self) -> ReportedStatus | None:
        """Return its status; None if it does not answer."""


class RollingRestart:
    """Rolling restarts of the same workers."""

    def __init__(
        self,
        workers: Sequence[RestartableWorker],
        progress: Path,
        print_line: PrintLine,
        back_s: float = BACK_TIMEOUT_S,
    ) -> None:
        """`progress` is the file with the state, for the command that started the restart."""
        self._workers = workers
        self._progress = progress
        self._print_line = print_line
        self._back_s = back_s

    async def run(self) -> bool:
        """Restart all; return whether all are back."""
        for worker in self._workers:
            self._note("running", worker.name)
            before = await self._served()
            await worker.prepare()
            began = time.monotonic()
            await worker.restart()
            if not await self._is_back(worker, before):
                self._print_line(f"rolling restart: the {worker.name} is not back, the others are not restarted")
                self._note("failed", worker.name)
                return False
            self._print_line(f"rolling restart: the {worker.name} is back after {time.monotonic() - began:.1f} s")
        self._note("done", "")
        return True

    async def _is_back(self, worker: RestartableWorker, before: frozenset[int]) -> bool:
        try:
            async with asyncio.timeout(self._back_s):
                while await worker.status() is None or not before <= await self._served():
                    await asyncio.sleep(POLL_INTERVAL_S)
        except TimeoutError:
            return False
        return True

    async def _served(self) -> frozenset[int]:
        statuses = await asyncio.gather(*(worker.status() for worker in self._workers))
        return frozenset[int]().union(
            *(status.partitions for status in statuses if status is not None and not status.recovering)
        )

    def _note(self, state: str, worker: str) -> None:
        draft = self._progress.with_suffix(".new")
        draft.write_bytes(orjson.dumps({"state": state, "worker": worker}))
        draft.replace(self._progress)


READINESS_INTERVAL_S = 0.2
"""Interval between checks of starting workers."""

LOG_ROTATION_INTERVAL_S = 5.0
"""Interval between checks of the size of the logs."""

WORKER_COMMAND = (sys.executable, "-m", "streams", "worker")
"""The worker in the same Python; its settings are in its environment."""


@dataclass(frozen=True, slots=True)
class FleetOptions:
    worker_ids: Sequence[str | None] = (None,)
    """One for each worker; None: the id in the data directory's file."""
    metrics: tuple[str, int] = ("127.0.0.1", 0)
    """Where the metrics of several workers are served; one worker serves its own."""
    command: Sequence[str] = WORKER_COMMAND
    liveness_interval_s: float = LIVENESS_INTERVAL_S


class SupervisedWorker:
    """Implements `streams.up.fleet.RestartableWorker`."""

    def __init__(self, process: WorkerProcess, child: SupervisedChild) -> None:
        self.name = process.name
        self.process = process
        self.child = child

    async def prepare(self) -> None:
        await self.child.prepare()

    async def restart(self) -> None:
        await self.child.restart()

    async def status(self) -> ReportedStatus | None:
        return await self.process.status()


class Fleet:
    def __init__(
        self, options: FleetOptions, layout: Layout, environment: Mapping[str, str], print_line: PrintLine
    ) -> None:
        """`environment` is that of all workers."""
        self._layout = layout
        self._options = options
        self._print_line = print_line
        self._workers = [
            SupervisedWorker(process, SupervisedChild(spec, print_line))
            for process in worker_processes(layout, options.worker_ids)
            for spec in (worker_service(layout, process, options.command, environment, options.liveness_interval_s),)
        ]
        self._rolling = RollingRestart(self._workers, layout.rolling_restart, print_line)
        self._is_wanted = asyncio.Event()

    async def run(self) -> None:
        """Keep all running until cancelled. Raises StartRefused if one can't start."""
        runs = [worker.child.run() for worker in self._workers]
        await run_together(*runs, self._restart_when_wanted(), *([self._serve_page()] if len(runs) > 1 else ()))

    async def stop(self) -> None:
        """Stop all, at the same time; then their shared embedders."""
        await asyncio.gather(*(worker.child.stop() for worker in self._workers))
        # They end with the last worker, unless they hang.
        end_shared_processes(shared_embedder_dir(self._layout.data_dir))

    def restart_in_turn(self) -> None:
        """Start a rolling restart, after the present one if there is one."""
        self._is_wanted.set()

    async def is_ready(self) -> bool:
        """True if every worker serves partitions; a single one is asked over the broker."""
        if len(self._workers) == 1:
            return True
        statuses = await asyncio.gather(*(worker.status() for worker in self._workers))
        return all(status is not None and not status.recovering for status in statuses)

    async def announce(self) -> None:
        """Wait until every worker serves partitions, and print it."""
        while not await self.is_ready():
            await asyncio.sleep(READINESS_INTERVAL_S)
        self.note_ready()
        self._print_line(f"{len(self._workers)} workers serve")

    def note_ready(self) -> None:
        """Restart the workers without limit from now on."""
        for worker in self._workers:
            worker.child.was_ready = True

    async def _restart_when_wanted(self) -> None:
        while True:
            await self._is_wanted.wait()
            self._is_wanted.clear()
            await self._rolling.run()

    async def _serve_page(self) -> None:
        # Only several workers need a web server.

        processes = [worker.process for worker in self._workers]
        await serve_fleet(processes, *self._options.metrics, self._layout.workers_port)


async def rotate_logs(layout: Layout) -> None:
    """Keep the logs of all children small, until cancelled."""
    while True:
        for log in layout.logs.glob("*.log"):
            rotate_log(log)
        await asyncio.sleep(LOG_ROTATION_INTERVAL_S)


async def run_together(*work: Coroutine[Any, Any, None]) -> None:
    """Run all concurrently; the first failure cancels the others and is raised."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
