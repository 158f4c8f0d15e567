"""Monitoring over HTTP at `METRICS_HOST`, by default loopback: `/metrics` for Prometheus, `/live`, `/health`.

`/live` fails if a worker makes no progress that a restart may restore. A retry is not progress. Time in which a
dependency is away does not count, as a restart would not bring it back; but a record that is retried while others are
written is a stall.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from streams.observability.metrics import Meters

STALL_TIMEOUT_S = 60.0
"""Lag without progress for this long is a stall: every step gives up or retries sooner."""

STUCK_TIMEOUT_S = 300.0
"""Time for which one event may block its partition while others continue: several times the largest turns in a row."""

RECOVERY_TIMEOUT_S = 900.0

Positions = Mapping[tuple[str, int], int]
"""Offset of the oldest unacknowledged event, by topic and partition; without idle partitions."""


class StallDetector:
    """Detects a frozen worker, and a frozen partition."""

    def __init__(
        self,
        progress: Callable[[], float],
        lag: Callable[[], int],
        positions: Callable[[], Positions],
        is_away: Callable[[], bool],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_away` is true while a dependency is known to be away."""
        self._progress = progress
        self._lag = lag
        self._positions = positions
        self._is_away = is_away
        self._now = now
        self._last_progress = -1.0
        self._looked_at = now()
        self._stalled_s = 0.0
        self._stuck_s: dict[tuple[tuple[str, int], int], float] = {}

    def alive(self, *, recovering: bool) -> bool:
        """True if work continues, or there is no work. Call it every few seconds."""
        now = self._now()
        counted, self._looked_at = (0.0 if self._is_away() else now - self._looked_at), now
        progress = self._progress()
        has_moved, self._last_progress = progress != self._last_progress, progress
        is_idle = self._lag() == 0 and not recovering
        self._stalled_s = 0.0 if has_moved or is_idle else self._stalled_s + counted
        if recovering:
            self._stuck_s.clear()
            return self._stalled_s < RECOVERY_TIMEOUT_S
        self._stuck_s = {
            position: self._stuck_s[position] + counted if position in self._stuck_s else 0.0
            for position in self._positions().items()
        }
        return self._stalled_s < STALL_TIMEOUT_S and max(self._stuck_s.values(), default=0.0) < STUCK_TIMEOUT_S


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
        if self._runner is not None:
            await self._runner.cleanup()

    async def _metrics(self, _request: web.Request) -> web.Response:
        status = self._status()
        for topic, lag in status.get("lag", {}).items():
            self._meters.lag.labels(topic).set(lag)
        self._meters.partitions_awaited.set(len(status.get("awaited", ())))
        # Remove the last lag of a partition that has left.
        self._meters.copy_lag.clear()
        for partition, lacking in status.get("copies", {}).items():
            self._meters.copy_lag.labels(partition).set(-1 if lacking is None else lacking)
        return web.Response(body=self._meters.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _live(self, _request: web.Request) -> web.Response:
        alive = self._alive()
        return web.json_response({"alive": alive}, status=200 if alive else 503)

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response(self._status())
