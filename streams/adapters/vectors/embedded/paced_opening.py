"""Open collections for calls: one at a time, each followed by a pause in which others are served.

Loading a collection holds the GIL for 30 to 60 ms, and closing another one for it 20: a question over many modes would
stop all other users while it opens them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.edge_collections import EdgeCollections
from streams.adapters.vectors.embedded.edge_shard import CollectionShard

PAUSE_SHARE = 2
"""How much longer than the opening took the next one waits for requests under way, as a multiple of that time."""

MAX_PAUSE_S = 0.25
"""The longest of both pauses: a disk that is slow for a moment delays its caller, and not for long."""

UntilQuiet = Callable[[float], Awaitable[None]]
"""Waits until no request is under way, at most so many seconds."""


async def no_requests(_at_most_s: float) -> None:
    """Return at once: an index of its own serves no requests."""


class PacedOpening:
    """Opens the collections of one index."""

    def __init__(self, collections: EdgeCollections, until_quiet: UntilQuiet, opening: asyncio.Lock) -> None:
        """`opening` is held while one is opened, by this index or another one of the process."""
        self._collections = collections
        self._until_quiet = until_quiet
        self._opening = opening

    async def readable(self, space: VectorSpace) -> CollectionShard | None:
        """Return the open collection, None if it does not exist; it stays open until the caller awaits something.

        Raises ValueError for another fingerprint, Unavailable for a lack of the system.
        """
        if self._collections.is_open(space):
            return self._collections.readable(space)
        async with self._opening:
            return await self._opened(space)

    async def _opened(self, space: VectorSpace) -> CollectionShard | None:
        is_opened_here = not self._collections.is_open(space)
        began = time.monotonic()
        shard = self._collections.readable(space)
        if shard is not None and is_opened_here:
            with shard.in_use():
                took = time.monotonic() - began
                # Also while none is under way: one that arrives is counted after some passes of the event loop.
                await asyncio.sleep(min(took, MAX_PAUSE_S))
                await self._until_quiet(min(PAUSE_SHARE * took, MAX_PAUSE_S))
        return shard
