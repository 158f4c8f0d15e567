"""Lets a limited number of questions be answered at a time, users in turn.

A user with as many turns as are free waits, so that a flood of one user, or of a few, leaves a turn to the next one.
Guaranteed: within a user the order is that of the calls.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

MAX_TURN_S = 0.5
"""Seconds of a turn: what takes longer waits for a store that does not answer, and holds up no other."""


class FairTurns:
    """Turns of users at something that only `at_once` of them may have.

    A user may have fewer turns than are free: of eight, one user has four, a second one two, two more one each. This is
    the threshold of Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches" (1998).
    """

    def __init__(self, at_once: int, max_turn_s: float = MAX_TURN_S) -> None:
        """A turn ends `max_turn_s` after it began, even if its work goes on."""
        self._free = at_once
        self._max_turn_s = max_turn_s
        self._turns: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """The calls of each user; the one served last is last."""

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Wait until it is this key's turn; it ends with the block, or when it has taken too long."""
        await self._begin(key)
        ending = asyncio.get_running_loop().call_later(self._max_turn_s, self._end, key)
        try:
            yield
        finally:
            if ending.when() > asyncio.get_running_loop().time():
                ending.cancel()
                self._end(key)

    async def _begin(self, key: str) -> None:
        allowed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(allowed)
        self._serve()
        try:
            await allowed
        except asyncio.CancelledError:
            if allowed.done() and not allowed.cancelled():
                self._end(key)
            raise

    def _end(self, key: str) -> None:
        self._free += 1
        self._turns[key] -= 1
        if not self._turns[key]:
            del self._turns[key]
        self._serve()

    def _serve(self) -> None:
        while (key := next(filter(self._may_have_another, self._waiting), None)) is not None:
            allowed = self._waiting[key].popleft()
            self._waiting.move_to_end(key)
            if not self._waiting[key]:
                del self._waiting[key]
            if not allowed.done():
                self._free -= 1
                self._turns[key] += 1
                allowed.set_result(None)

    def _may_have_another(self, key: str) -> bool:
        return self._turns[key] < self._free
