"""Monitoring over HTTP, on loopback only: `/metrics` for Prometheus, `/live`, `/health`."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from streams.observability.metrics import Meters

STALL_TIMEOUT_S = 60.0
"""Lag without progress for this long is a stall: every step gives up or retries sooner."""

RECOVERY_TIMEOUT_S = 900.0
"""Limit of a recovery."""


class StallDetector:
    """Detects a stall by lag without progress."""

    def __init__(
        self, progress: Callable[[], float], lag: Callable[[], int], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._progress = progress
        self._lag = lag
        self._now = now
        self._last_progress = -1.0
        self._since = now()

    def alive(self, *, recovering: bool) -> bool:
        """True if work goes on or there is none. To be called every few seconds."""
        progress = self._progress()
        if progress != self._last_progress or (self._lag() == 0 and not recovering):
            self._last_progress = progress
            self._since = self._now()
        return self._now() - self._since < (RECOVERY_TIMEOUT_S if recovering else STALL_TIMEOUT_S)


class MonitoringServer:
    """A small web server without access to memories."""

    def __init__(self, meters: Meters, alive: Callable[[], bool], status: Callable[[], dict[str, Any]]) -> None:
        self._meters = meters
        self._alive = alive
        self._status = status
        self._runner: web.AppRunner | None = None

    async def start(self, port: int, port_file: Path) -> None:
        """Listen, and write the port to a file for the supervisor."""
        application = web.Application()
        application.router.add_get("/metrics", self._metrics)
        application.router.add_get("/live", self._live)
        application.router.add_get("/health", self._health)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        await asyncio.to_thread(_write_port, port_file, self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _metrics(self, _request: web.Request) -> web.Response:
        for topic, lag in self._status().get("lag", {}).items():
            self._meters.lag.labels(topic).set(lag)
        return web.Response(body=self._meters.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _live(self, _request: web.Request) -> web.Response:
        alive = self._alive()
        return web.json_response({"alive": alive}, status=200 if alive else 503)

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response(self._status())


def _write_port(port_file: Path, port: int) -> None:
    port_file.parent.mkdir(parents=True, exist_ok=True)
    port_file.write_text(str(port))
