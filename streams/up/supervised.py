"""One child that is started again whenever it ends."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from streams.up.child import Child
from streams.up.console import Tell
from streams.up.logs import tail_log
from streams.up.ownership import StartRefused
from streams.up.restart_backoff import RestartBackoff

MAX_FAILED_STARTS = 5
"""So many short lives in a row, before all was ready once, mean that it can't be started at all."""


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """What there is to know about a child."""

    name: str
    log: Path
    stop_s: float
    """How long it may take to end before it is killed."""
    start: Callable[[], Awaitable[Child]]
    watch: Callable[[Child], Awaitable[str]]
    """Returns, with the reason, when a child that runs has to be killed; cancelled when the child ends."""


class SupervisedChild:
    """Keeps one child running."""

    def __init__(self, kind: ServiceSpec, tell: Tell) -> None:
        self._kind = kind
        self._tell = tell
        self._pace = RestartBackoff()
        self._child: Child | None = None
        self.proven = False
        """Whether everything was ready once: from then on there is no giving up."""

    async def keep(self) -> None:
        """Start it again and again, until cancelled. Raises Refused when it never gets anywhere."""
        while True:
            began = time.monotonic()
            self._child = await self._kind.start()
            code = await self._watched(self._child)
            pause_s = self._pace.pause_after(time.monotonic() - began)
            self._report(code, pause_s)
            await asyncio.sleep(pause_s)

    async def stop(self) -> None:
        """End the child that runs, if any: a request, and force after a while."""
        if self._child is not None:
            await self._child.stop(self._kind.stop_s)

    async def _watched(self, child: Child) -> int:
        watch = asyncio.create_task(self._kill_when_told(child))
        try:
            return await child.wait()
        finally:
            watch.cancel()

    async def _kill_when_told(self, child: Child) -> None:
        reason = await self._kind.watch(child)
        if child.exit_code is None:
            self._tell(f"killing the {self._kind.name}: {reason}")
            child.kill()

    def _report(self, code: int, pause_s: float) -> None:
        name, short = self._kind.name, self._pace.short_in_a_row
        self._tell(f"the {name} ended with code {code}; what it wrote is in {self._kind.log}")
        if short > 1:
            for line in tail_log(self._kind.log):
                self._tell(f"  {line}")
        if not self.proven and short >= MAX_FAILED_STARTS:
            reason = f"the {name} does not start"
            raise StartRefused(reason)
        self._tell(f"starting the {name} again" + (f" in {pause_s:.1f} s" if pause_s else ""))
