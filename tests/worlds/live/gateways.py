"""A gateway process on a running broker, and an HTTP client of it."""

import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx

from streams.up.layout import free_port
from tests.worlds.live.processes import eventually, spawn

OUTLASTS_A_RESTART_S = 60.0
"""The limit of one answer for the HTTP client: the gateway's own is shorter."""


class Gateway:
    """One process of `python -m streams gateway`; started again, it keeps its address."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        self._environment = {**environment, "MODESTREAM_GATEWAY_BIND": f"127.0.0.1:{self.port}"}
        self.start()

    def start(self) -> None:
        self.process = spawn("gateway", self.log, self._environment)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self, within_s: float) -> int:
        """Send SIGTERM and return the exit code. Raises TimeoutExpired."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within_s)

    async def has_status(self, http: httpx.AsyncClient, path: str, status: int) -> None:
        """Wait until a GET has this status."""

        async def answers() -> bool:
            with suppress(httpx.TransportError):
                return (await http.get(path)).status_code == status
            return False

        await eventually(answers, f"GET {path} answers {status}: {self.log.read_text()[-2000:]}")


@asynccontextmanager
async def gateway_on(
    environment: Mapping[str, str], directory: Path
) -> AsyncIterator[tuple[Gateway, httpx.AsyncClient]]:
    """Run a gateway with these settings, and a client of it, until the block ends."""
    gateway = Gateway(environment, directory / "gateway.log")
    # The side that closes an idle connection first must be the client.
    limits = httpx.Limits(keepalive_expiry=2.0)
    try:
        async with httpx.AsyncClient(base_url=gateway.url, limits=limits, timeout=OUTLASTS_A_RESTART_S) as http:
            await gateway.has_status(http, "/live", 200)
            yield gateway, http
    finally:
        gateway.kill()
