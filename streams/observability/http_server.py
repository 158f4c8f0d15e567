"""Monitoring over HTTP at `METRICS_HOST`, by default loopback: `/metrics` for Prometheus, `/live`, `/health`."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from streams.observability.metrics import Meters


class MonitoringServer:
    """A small web server without access to memories."""

    def __init__(self, meters: Meters, alive: Callable[[], bool], status: Callable[[], dict[str, Any]]) -> None:
        self._meters = meters
        self._alive = alive
        self._status = status
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int, port_file: Path) -> None:
        """Listen, and write the port to a file for the supervisor."""
        application = web.Application()
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/live", self._live)
        application.router.add_get("/health", self._health)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        port_file.parent.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(port_file.write_text, str(self._runner.addresses[0][1]))

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _metrics(self, _request: web.Request) -> web.Response:
        status = self._status()
        for topic, lag in status.get("lag", {}).items():
            self._meters.lag.labels(topic).set(lag)
        self._meters.partitions_awaited.set(len(status.get("awaited", ())))
        # A partition that is no longer kept must not stay with its last lag.
        self._meters.copy_lag.clear()
        for partition, lacking in status.get("copies", {}).items():
            self._meters.copy_lag.labels(partition).set(-1 if lacking is None else lacking)
        return web.Response(body=self._meters.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _live(self, _request: web.Request) -> web.Response:
        alive = self._alive()
        return web.json_response({"alive": alive}, status=200 if alive else 503)

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response(self._status())
