"""Lets a limited number of questions be answered at a time, users in turn.

Questions of one user wait for one another, those of another user for a few of them at most: a flood of one user is that
user's own wait. Guaranteed: within a user the order is that of the calls.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from streams.fair_queue import FairQueue

MAX_TURN_S = 0.5
"""Seconds of a turn: what takes longer waits for a store that does not answer, and holds up no other."""


class FairTurns:
    """Turns of users at something that only `at_once` of them may have."""

    def __init__(self, at_once: int, max_turn_s: float = MAX_TURN_S) -> None:
        """A turn ends `max_turn_s` after it began, even if its work goes on."""
        self._free = at_once
        self._max_turn_s = max_turn_s
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Wait until it is this key's turn; it ends with the block, or when it has taken too long."""
        await self._begin(key)
        ending = asyncio.get_running_loop().call_later(self._max_turn_s, self._end)
        try:
            yield
        finally:
            if ending.when() > asyncio.get_running_loop().time():
                ending.cancel()
                self._end()

    async def _begin(self, key: str) -> None:
        if self._free:
            self._free -= 1
            return
        allowed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put(key, allowed)
        try:
            await allowed
        except asyncio.CancelledError:
            if allowed.done() and not allowed.cancelled():
                self._end()
            raise

    def _end(self) -> None:
        while len(self._waiting):
            allowed = self._waiting.get()
            if not allowed.done():
                allowed.set_result(None)
                return
        self._free += 1
