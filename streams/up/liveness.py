"""Probes of children over HTTP; bad answers of a worker's `/live` in a row count as dead: three, at its start more."""

import asyncio
from pathlib import Path
from typing import Literal

LIVENESS_INTERVAL_S = 5.0
"""The pause between two probes."""

STARTUP_GRACE_S = 120.0
"""How long a new worker may be silent before its first answer: it loads its program and connects."""

STARTUP_FAILURE_THRESHOLD = 6
"""Silent probes in a row that count as dead within the grace period, after the first answer: some 60 s. It answers
before its tables are recovered, and opening large ones may hold it for half of that, at every start."""

FAILURE_THRESHOLD = 3
"""Bad answers in a row that count as dead."""

LIVENESS_TIMEOUT_S = 5.0
"""Limit of one probe."""

LivenessAnswer = Literal["live", "stuck", "silent"]


class LivenessMonitor:
    """Counts the bad answers of one worker process."""

    def __init__(self) -> None:
        self._bad = 0
        self._has_answered = False

    def is_dead(self, answer: LivenessAnswer, age_s: float) -> bool:
        """Take one answer of a worker that was started `age_s` seconds ago; True if it must be killed."""
        self._has_answered |= answer != "silent"
        is_starting = age_s <= STARTUP_GRACE_S
        bad = answer == "stuck" or (answer == "silent" and (self._has_answered or not is_starting))
        self._bad = self._bad + 1 if bad else 0
        threshold = STARTUP_FAILURE_THRESHOLD if is_starting and answer == "silent" else FAILURE_THRESHOLD
        return self._bad >= threshold


async def probe_liveness(port_file: Path) -> LivenessAnswer:
    """Probe the worker at the port in this file: 503 is stuck, another status live, no answer silent."""
    answer = await fetch(port_file, "/live")
    if answer is None:
        return "silent"
    return "stuck" if answer[0] == b"503" else "live"


async def answers_http(port: int, path: str) -> bool:
    """True if a server at a loopback port answers a path with 200 in time."""
    try:
        async with asyncio.timeout(LIVENESS_TIMEOUT_S):
            return (await _get(port, path))[0] == b"200"
    except (OSError, TimeoutError, IndexError):
        return False


async def fetch(port_file: Path, path: str) -> tuple[bytes, bytes] | None:
    """Return status and body of a path at the loopback port in this file; None if there is no answer in time."""
    try:
        async with asyncio.timeout(LIVENESS_TIMEOUT_S):
            return await _get(int(port_file.read_text(encoding="ascii")), path)
    except (OSError, ValueError, TimeoutError, IndexError):
        return None


async def _get(port: int, path: str) -> tuple[bytes, bytes]:
    """Return status and body. An HTTP client would use the proxy of the environment."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        status = (await reader.readline()).split()[1]
        while (await reader.readline()).strip():
            pass
        return status, await reader.read()
    finally:
        writer.close()
