"""The latest passages' vectors of one model, so that one pass serves everyone who needs a text's vectors.

Enters: prefix and text. Leaves: the pooled vector, the token vectors, and what a reader made of the text. Guaranteed:
the same text asked for again, or by two at the same time, costs one pass; whoever stops waiting stops nobody else's; a
failure is never kept.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np

from schemas.vectors import Encoded, Vector
from streams.adapters.embedding.inference.token_grid import QuantisedTokens, dequantise_tokens, quantise_tokens

MAX_CACHED_TEXTS = 2048
"""Texts kept for each model. A turn's next use follows within seconds."""

MAX_CACHED_BYTES = 16_000_000
"""Bytes of vectors kept for each model: `MAX_CACHED_TEXTS` turns of MiniLM's take 8 MB, 1.5 KB each and 2.5 KB for 20 tokens;
longer texts leave earlier."""

TextKey = tuple[str, bytes]
"""Prefix and hash of the text."""


@dataclass(frozen=True, slots=True)
class CachedVectors:
    """One text's vectors, small, and copies: a view would keep the whole answer alive."""

    pooled: Vector
    tokens: QuantisedTokens
    shares: Vector | None

    @property
    def bytes(self) -> int:
        """What it takes, but for the objects around it."""
        return self.pooled.nbytes + self.tokens.nbytes


class VectorCache:
    """Keeps vectors of passages; those used last stay longest."""

    def __init__(
        self,
        embed: Callable[[str, str], Awaitable[Encoded]],
        size: int = MAX_CACHED_TEXTS,
        size_bytes: int = MAX_CACHED_BYTES,
    ) -> None:
        """Take what embeds a text (first) with a prefix (second), how many to keep, and how many bytes of them."""
        self._embed = embed
        self._size = size
        self._size_bytes = size_bytes
        self._bytes = 0
        self._kept: OrderedDict[TextKey, CachedVectors] = OrderedDict()
        self._under_way: dict[TextKey, asyncio.Task[CachedVectors]] = {}

    async def passage(self, text: str, prefix: str) -> Encoded:
        """The vectors of a passage; the pooled one is shared, and read-only."""
        key = prefix, hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return from_cached(kept)
        if (task := self._under_way.get(key)) is None:
            task = self._under_way[key] = asyncio.create_task(self._pass(key, text))
            task.add_done_callback(_seen)
        return from_cached(await asyncio.shield(task))

    async def _pass(self, key: TextKey, text: str) -> CachedVectors:
        try:
            kept = to_cached(await self._embed(text, key[0]))
        finally:
            del self._under_way[key]
        self._kept[key] = kept
        self._bytes += kept.bytes
        while len(self._kept) > self._size or self._bytes > self._size_bytes:
            self._bytes -= self._kept.popitem(last=False)[1].bytes
        return kept


def to_cached(encoded: Encoded) -> CachedVectors:
    """A copy that nobody can change, with the token vectors as 8-bit integers."""
    pooled = np.array(encoded.pooled, np.float32)
    pooled.flags.writeable = False
    return CachedVectors(
        pooled,
        quantise_tokens(encoded.tokens),
        None if encoded.interaction_probabilities is None else np.array(encoded.interaction_probabilities),
    )


def from_cached(kept: CachedVectors) -> Encoded:
    """The vectors as they were given."""
    return Encoded(kept.pooled, dequantise_tokens(kept.tokens), kept.shares)


def _seen(task: asyncio.Task[CachedVectors]) -> None:
    """Take note of a failure that nobody waits for any more."""
    if not task.cancelled():
        task.exception()
