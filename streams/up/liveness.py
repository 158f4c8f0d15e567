"""When a worker that still runs counts as dead.

Enters: what `/live` on its loopback port says. Leaves: the order to end it, after three bad answers in a row.
"""

import asyncio
from pathlib import Path
from typing import Literal

LIVENESS_INTERVAL_S = 5.0
"""The pause between two questions."""

STARTUP_GRACE_S = 120.0
"""How long a worker may say nothing at first: it loads models and recovers tables."""

FAILURE_THRESHOLD = 3
"""So many bad answers in a row end it."""

LIVENESS_TIMEOUT_S = 5.0
"""How long it may take to answer one question."""

LivenessAnswer = Literal["live", "stuck", "silent"]


class LivenessMonitor:
    """Judges the answers of one worker process."""

    def __init__(self) -> None:
        self._bad = 0

    def is_dead(self, answer: LivenessAnswer, age_s: float) -> bool:
        """Take one answer of a worker that was started `age_s` seconds ago."""
        bad = answer == "stuck" or (answer == "silent" and age_s > STARTUP_GRACE_S)
        self._bad = self._bad + 1 if bad else 0
        return self._bad >= FAILURE_THRESHOLD


async def probe_liveness(port_file: Path) -> LivenessAnswer:
    """Ask the worker that wrote its port into this file: 503 is stuck, another answer live, none at all silent."""
    try:
        async with asyncio.timeout(LIVENESS_TIMEOUT_S):
            status = await _status(int(port_file.read_text(encoding="ascii")))
    except (OSError, ValueError, TimeoutError, IndexError):
        return "silent"
    return "stuck" if status == b"503" else "live"


async def _status(port: int) -> bytes:
    """The HTTP status of `/live`. Spelled out, since a client would go through a proxy that the environment names."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        return (await reader.readline()).split()[1]
    finally:
        writer.close()
