"""Requests whose callers wait: work of a backlog gives way to them.

All code of a worker shares one event loop. While one user's backlog is worked off, a request of another user waits at
each of its steps for what runs in between. Guaranteed: a backlog keeps a quarter of the loop's time, so that it ends.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

MAX_WAIT_SHARE = 3
"""How long work of a backlog waits for requests under way, as a multiple of the time that it took before."""


class Foreground:
    """Counts the requests under way. Belongs to one event loop."""

    def __init__(self) -> None:
        self._under_way = 0
        self._quiet = asyncio.Event()

    @property
    def is_busy(self) -> bool:
        """True while requests are under way."""
        return self._under_way > 0

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count a request until the block ends."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Count a request; `leave` ends it."""
        self._under_way += 1
        self._quiet.clear()

    def leave(self) -> None:
        """Count a request no more."""
        self._under_way -= 1
        if not self._under_way:
            self._quiet.set()

    async def give_way(self, worked_s: float) -> None:
        """Let other tasks run; while requests are under way wait, at most `MAX_WAIT_SHARE` times `worked_s` seconds."""
        if not self._under_way:
            await asyncio.sleep(0)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(worked_s * MAX_WAIT_SHARE):
                await self._quiet.wait()
