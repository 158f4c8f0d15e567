"""A child that is probed over HTTP, and restarted, with backoff, whenever it ends.

Three consecutive bad answers of a worker's `/live` count as dead, more at its start.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from streams.up.child import Child, tail_log
from streams.up.console import PrintLine
from streams.up.ownership import SettingsRefused, StartRefused
from streams.up.replacement import Replacement

LIVENESS_INTERVAL_S = 5.0

STARTUP_GRACE_S = 120.0
"""Grace period of a new worker before its first answer: it loads its program and connects."""

STARTUP_FAILURE_THRESHOLD = 6
"""Silent probes in a row that count as dead within the grace period, after the first answer: about 60 s. It answers
before its tables are recovered, and opening large ones may hold it for half of that, at every start."""

FAILURE_THRESHOLD = 3
"""Bad answers in a row that count as dead."""

LIVENESS_TIMEOUT_S = 5.0

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


MAX_FAILED_STARTS = 5
"""Consecutive short lives, before the system was first ready, that count as a failure to start."""

INITIAL_RESTART_BACKOFF_S = 0.2
"""Pause after the second consecutive short life; it doubles for each further one."""

MAX_RESTART_BACKOFF_S = 5.0

STABLE_AFTER_S = 10.0
"""A child with a longer life did not fail at its start; it is restarted at once."""


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """How a child is started, watched and stopped."""

    name: str
    log: Path
    stop_s: float
    """Time to end before it is killed."""
    start: Callable[[], Awaitable[Child]]
    watch: Callable[[Child], Awaitable[str]]
    """Returns a reason when a running child must be killed; cancelled when the child ends."""
    start_replacement: Callable[[], Awaitable[Replacement]] | None = None
    """Starts a replacement; None: a new child is started when the former has ended."""
    before_start: Callable[[], None] = lambda: None
    """Called before a child starts, and after the former one has ended."""


class RestartBackoff:
    """Doubling pauses after consecutive short lives; no pause after the first."""

    def __init__(self) -> None:
        self.short_in_a_row = 0

    def pause_after(self, lived_s: float) -> float:
        """Return the seconds to wait after a child has ended after `lived_s` seconds."""
        self.short_in_a_row = 0 if lived_s >= STABLE_AFTER_S else self.short_in_a_row + 1
        if self.short_in_a_row <= 1:
            return 0.0
        return min(MAX_RESTART_BACKOFF_S, INITIAL_RESTART_BACKOFF_S * 2.0 ** (self.short_in_a_row - 2))


class SupervisedChild:
    """Keeps one child running."""

    def __init__(self, spec: ServiceSpec, print_line: PrintLine) -> None:
        self._spec = spec
        self._print_line = print_line
        self._backoff = RestartBackoff()
        self._child: Child | None = None
        self._is_ordered_to_end = False
        self._replacement: Replacement | None = None
        self.was_ready = False
        """True once the system was ready: from then on it is restarted without limit, unless it is refused."""

    async def run(self) -> None:
        """Keep starting it until cancelled. Raises StartRefused if its first starts fail, or it is refused."""
        while True:
            began = time.monotonic()
            self._spec.before_start()
            replacement, self._replacement = self._replacement, None
            self._child = await self._spec.start() if replacement is None else replacement.begin()
            watch = asyncio.create_task(self._kill_on_verdict(self._child))
            try:
                code = await self._child.wait()
            finally:
                watch.cancel()
            if self._is_ordered_to_end:
                self._is_ordered_to_end = False
                continue
            pause_s = self._backoff.pause_after(time.monotonic() - began)
            name, short = self._spec.name, self._backoff.short_in_a_row
            self._print_line(f"the {name} ended with code {code}; its output is in {self._spec.log}")
            is_refusal = code == os.EX_CONFIG
            if short > 1 or is_refusal:
                for line in tail_log(self._spec.log):
                    self._print_line(f"  {line}")
            if is_refusal:
                raise SettingsRefused(f"the {name} refuses its settings")
            if not self.was_ready and short >= MAX_FAILED_STARTS:
                raise StartRefused(f"the {name} does not start; its output above has the reason")
            self._print_line(f"starting the {name} again" + (f" in {pause_s:.1f} s" if pause_s else ""))
            await asyncio.sleep(pause_s)

    async def prepare(self) -> None:
        """Load the replacement of the running child; if that fails, one is started normally."""
        if self._spec.start_replacement is not None:
            self._replacement = await self._spec.start_replacement()
            if not await self._replacement.is_loaded():
                await self._end_replacement()

    async def restart(self) -> None:
        """End the running child, if any; its replacement starts. Returns when it has ended."""
        if self._child is not None and self._child.exit_code is None:
            self._is_ordered_to_end = True
            await self._child.stop(self._spec.stop_s)

    async def stop(self) -> None:
        """Stop the running child, if any, and its replacement."""
        await self._end_replacement()
        if self._child is not None:
            await self._child.stop(self._spec.stop_s)

    async def _end_replacement(self) -> None:
        replacement, self._replacement = self._replacement, None
        if replacement is not None:
            await replacement.end()

    async def _kill_on_verdict(self, child: Child) -> None:
        reason = await self._spec.watch(child)
        if child.exit_code is None:
            self._print_line(f"killing the {self._spec.name}: {reason}")
            child.kill()
