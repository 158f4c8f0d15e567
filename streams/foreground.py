"""Requests whose callers wait: work of a backlog gives way to them.

All code of a worker shares one event loop. While one user's backlog is worked off, a request of another user waits at
each of its steps for what runs in between. Guaranteed: a backlog keeps a share of the loop's time, so that it ends.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import Protocol

MAX_REQUEST_S = 0.25
"""How long a request counts: what takes longer waits for something else than the event loop."""

LULL_S = 0.5
"""How long after a request the next one is expected."""

SLICE_S = 0.016
"""Seconds of a backlog at a stretch, while no request is expected: the same code for several events in a row finds its
data in the processor's caches."""

MAX_WAIT_SHARE = 3
"""How long work of a backlog waits for requests under way, as a multiple of the time that it took before."""


MAX_PAUSE_S = 0.05
"""The longest pause: what an event has taken may have been a wait, for a store or a thread."""


class _End(Protocol):
    def __call__(self, *, is_another_expected: bool) -> None: ...


class RequestUnderWay:
    """One request, and whether it counts."""

    __slots__ = ("_begin", "_end", "_timer")

    def __init__(self, begin: Callable[[], None], end: _End) -> None:
        """Count from now on; `begin` and `end` change the number of those that count."""
        self._begin = begin
        self._end = end
        self.count()

    def count(self) -> None:
        """Count for at most `MAX_REQUEST_S` seconds; not to be called while it counts."""
        self._begin()
        self._timer: asyncio.TimerHandle | None = asyncio.get_running_loop().call_later(MAX_REQUEST_S, self.leave)

    def leave(self, *, is_another_expected: bool = True) -> bool:
        """Count no longer; return False if it has not counted."""
        if self._timer is None:
            return False
        self._timer.cancel()
        self._timer = None
        self._end(is_another_expected=is_another_expected)
        return True


_own_request: ContextVar[RequestUnderWay | None] = ContextVar("own_request", default=None)
"""The request that the current task handles."""


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

    @property
    def slice_s(self) -> float:
        """Return how many seconds of a backlog may follow one another; 0.0, one event, while a request is expected."""
        return 0.0 if self.is_expected else SLICE_S

    def enter(self) -> RequestUnderWay:
        """Count a request until it is left, at most `MAX_REQUEST_S` seconds."""
        return RequestUnderWay(self._begin, self._end)

    @contextmanager
    def handling(self, request: RequestUnderWay | None) -> Iterator[None]:
        """Note the request that this task handles, and those that it starts meanwhile; None for one not counted."""
        token = _own_request.set(request)
        try:
            yield
        finally:
            _own_request.reset(token)

    @contextmanager
    def waiting_for_backlog(self) -> Iterator[None]:
        """Count the request of this task no longer while it waits for what a backlog brings, and again afterwards."""
        request = _own_request.get()
        if request is None or not request.leave(is_another_expected=False):
            yield
            return
        try:
            yield
        finally:
            request.count()

    async def give_way_to_others(self, worked_s: float) -> None:
        """Stop counting this task's request, as it runs long, and give way to the other requests."""
        if (request := _own_request.get()) is not None:
            request.leave()
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

    @asynccontextmanager
    async def slice(self, share: float = MAX_WAIT_SHARE) -> AsyncIterator[None]:
        """Do a part of a backlog in the block, and give way to others by the time that it took."""
        clock = asyncio.get_running_loop().time
        began = clock()
        yield
        await self.give_way(clock() - began, share)

    async def until_quiet(self, at_most_s: float) -> None:
        """Let other tasks run; wait until no request is under way, at most `at_most_s` seconds."""
        if not self._under_way:
            await asyncio.sleep(0)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await self._quiet.wait()

    def _begin(self) -> None:
        self._under_way += 1
        self._quiet.clear()

    def _end(self, *, is_another_expected: bool) -> None:
        self._under_way -= 1
        if is_another_expected:
            self._expected_until = asyncio.get_running_loop().time() + LULL_S
        if not self._under_way:
            self._quiet.set()
