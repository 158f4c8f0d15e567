"""Monitoring of several workers over HTTP, at one address: `/metrics` of all, `/live` of the supervisor, `/health`."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from streams.up.fleet_page import merge_pages
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
        # Workers that are stuck are restarted by this process: it need not be restarted for them.
        return web.json_response({"alive": True})

    async def health(self, _: web.Request) -> web.Response:
        found = await asyncio.gather(*(worker.health() for worker in self._workers.values()))
        return web.json_response({"workers": dict(zip(self._workers, found, strict=True))})
