"""Monitoring of several workers over HTTP, at one address: `/metrics` of all, `/live` of the supervisor, `/health`.

`/metrics` is one page of all workers' pages in Prometheus' text format, each series with the label `worker`.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from streams.up.workers import WorkerProcess


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
