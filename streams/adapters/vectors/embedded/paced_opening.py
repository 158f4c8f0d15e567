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

Pause = Callable[[float], Awaitable[None]]
"""Lets others go on after so many seconds of opening."""


class PacedOpening:
    """Opens the collections of one index."""

    def __init__(self, collections: EdgeCollections, pause: Pause) -> None:
        self._collections = collections
        self._pause = pause
        self._opening = asyncio.Lock()

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
                await self._pause(time.monotonic() - began)
        return shard
