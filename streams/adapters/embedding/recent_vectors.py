"""The latest passages' vectors of one model, so that one pass serves everyone who needs a text's vector.

Enters: prefix and text. Leaves: the pooled vector, without token vectors. Guaranteed: the same text asked for again,
or by two at the same time, costs one pass; whoever stops waiting stops nobody else's; a failure is never kept.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import numpy as np

from schemas.vectors import Encoded

RECENT = 2048
"""Vectors kept for each model: 3 MB of MiniLM's. A turn's next use follows within seconds."""

Key = tuple[str, bytes]
"""Prefix and hash of the text."""


class RecentVectors:
    """Keeps vectors of passages; those used last stay longest."""

    def __init__(self, embed: Callable[[str, str], Awaitable[Encoded]], size: int = RECENT) -> None:
        """Take what embeds a text (first) with a prefix (second), and how many vectors to keep."""
        self._embed = embed
        self._size = size
        self._kept: OrderedDict[Key, Encoded] = OrderedDict()
        self._under_way: dict[Key, asyncio.Task[Encoded]] = {}

    async def passage(self, text: str, prefix: str) -> Encoded:
        """The vector of a passage, read-only."""
        key = prefix, hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept
        if (task := self._under_way.get(key)) is None:
            task = self._under_way[key] = asyncio.create_task(self._pass(key, text))
            task.add_done_callback(_seen)
        return await asyncio.shield(task)

    async def _pass(self, key: Key, text: str) -> Encoded:
        try:
            encoded = pooled_only(await self._embed(text, key[0]))
        finally:
            del self._under_way[key]
        self._kept[key] = encoded
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return encoded


def pooled_only(encoded: Encoded) -> Encoded:
    """A copy of the pooled vector that nobody can change; a view would keep the whole answer alive."""
    pooled = np.array(encoded.pooled, np.float32)
    pooled.flags.writeable = False
    shares = None if encoded.shares is None else np.array(encoded.shares)
    return Encoded(pooled, np.empty((0, len(pooled)), np.float32), shares)


def _seen(task: asyncio.Task[Encoded]) -> None:
    """Take note of a failure that nobody waits for any more."""
    if not task.cancelled():
        task.exception()
