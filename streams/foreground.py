"""Requests whose callers wait: work of a backlog gives way to them.

All code of a worker shares one event loop. While one user's backlog is worked off, a request of another user waits at
each of its steps for what runs in between. Guaranteed: a backlog keeps a share of the loop's time, so that it ends.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

_own_request: ContextVar[Callable[[], None] | None] = ContextVar("own_request", default=None)
"""Ends the request that the current task handles."""

MAX_REQUEST_S = 0.25
"""How long a request counts: what takes longer waits for something else than the event loop."""

LULL_S = 0.5
"""How long after a request the next one is expected."""

MAX_WAIT_SHARE = 3
"""How long work of a backlog waits for requests under way, as a multiple of the time that it took before."""


MAX_PAUSE_S = 0.05
"""The longest pause: what an event has taken may have been a wait, for a store or a thread."""


class Foreground:
    """Counts the requests under way. Belongs to one event loop."""

    def __init__(self) -> None:
        self._under_way = 0
        self._pausing = asyncio.Lock()
        self._quiet = asyncio.Event()
        self._expected_until = float("-inf")

    @property
    def is_expected(self) -> bool:
        """True while requests are under way, and shortly afterwards."""
        return self._under_way > 0 or asyncio.get_running_loop().time() < self._expected_until

    def enter(self) -> Callable[[], None]:
        """Count a request until the result is called, at most `MAX_REQUEST_S` seconds."""
        self._under_way += 1
        self._quiet.clear()
        timer = asyncio.get_running_loop().call_later(MAX_REQUEST_S, self._leave)

        def leave() -> None:
            if not timer.cancelled() and timer.when() > asyncio.get_running_loop().time():
                timer.cancel()
                self._leave()

        return leave

    @contextmanager
    def handling(self, leave: Callable[[], None] | None) -> Iterator[None]:
        """Note the request that this task handles, and those that it starts meanwhile; None for one not counted."""
        token = _own_request.set(leave)
        try:
            yield
        finally:
            _own_request.reset(token)

    async def give_way_to_others(self, worked_s: float) -> None:
        """Count the request of this task no longer, as it takes long, and give way to those under way."""
        if (leave := _own_request.get()) is not None:
            leave()
        await self.give_way(worked_s)

    async def give_way(self, worked_s: float, share: float = MAX_WAIT_SHARE) -> None:
        """Let other tasks run; while requests are under way wait, at most `share` times `worked_s` or `MAX_PAUSE_S`.

        While requests are expected, the pauses of all agents follow one another: otherwise each agent would begin one
        event in the same pass of the event loop, and a request waits for a pass at each of its steps.
        """
        if not self.is_expected:
            await asyncio.sleep(0)
            return
        async with self._pausing:
            await self.until_quiet(min(worked_s * share, MAX_PAUSE_S))

    async def until_quiet(self, at_most_s: float) -> None:
        """Let other tasks run; wait until no request is under way, at most `at_most_s` seconds."""
        if not self._under_way:
            await asyncio.sleep(0)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await self._quiet.wait()

    def _leave(self) -> None:
        self._under_way -= 1
        self._expected_until = asyncio.get_running_loop().time() + LULL_S
        if not self._under_way:
            self._quiet.set()
