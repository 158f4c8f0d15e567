"""An LRU cache of one model's passage vectors, so that a text is embedded once for all of its uses.

Enters: prefix and text. Leaves: the pooled vector, the token vectors, and the interaction probabilities. Guaranteed:
repeated and concurrent requests for a text cost one pass; cancelling one request leaves the others theirs; a failure is
never cached.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np

from schemas.models.vectors import Encoded, Vector
from streams.adapters.embedding.inference.token_grid import QuantisedTokens, dequantise_tokens, quantise_tokens

MAX_CACHED_TEXTS = 2048
"""Texts cached for each model. A turn's next use follows within seconds."""

MAX_CACHED_BYTES = 16_000_000
"""Bytes of vectors cached for each model. `MAX_CACHED_TEXTS` turns of MiniLM take 8 MB, 1.5 KB each and 2.5 KB for 20
tokens; with longer texts fewer fit."""

TextKey = tuple[str, bytes]
"""Prefix and hash of the text."""


@dataclass(frozen=True, slots=True)
class CachedVectors:
    """The vectors of one text, quantised; copies, since a view would keep the whole response alive."""

    pooled: Vector
    tokens: QuantisedTokens
    interaction_probabilities: Vector | None

    @property
    def bytes(self) -> int:
        """The size of the arrays, without the objects around them."""
        return self.pooled.nbytes + self.tokens.nbytes


class VectorCache:
    """Caches passage vectors, least recently used out first."""

    def __init__(
        self,
        embed: Callable[[str, str], Awaitable[Encoded]],
        size: int = MAX_CACHED_TEXTS,
        size_bytes: int = MAX_CACHED_BYTES,
    ) -> None:
        """Take `embed(text, prefix)`, and the most texts and bytes to cache."""
        self._embed = embed
        self._size = size
        self._size_bytes = size_bytes
        self._bytes = 0
        self._cached: OrderedDict[TextKey, CachedVectors] = OrderedDict()
        self._in_flight: dict[TextKey, asyncio.Task[CachedVectors]] = {}

    async def passage(self, text: str, prefix: str) -> Encoded:
        """Return the vectors of a passage; the pooled one is shared, and read-only."""
        key = prefix, hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if (cached := self._cached.get(key)) is not None:
            self._cached.move_to_end(key)
            return from_cached(cached)
        if (task := self._in_flight.get(key)) is None:
            task = self._in_flight[key] = asyncio.create_task(self._pass(key, text))
            task.add_done_callback(_retrieve_exception)
        return from_cached(await asyncio.shield(task))

    async def _pass(self, key: TextKey, text: str) -> CachedVectors:
        try:
            cached = to_cached(await self._embed(text, key[0]))
        finally:
            del self._in_flight[key]
        self._cached[key] = cached
        self._bytes += cached.bytes
        while len(self._cached) > self._size or self._bytes > self._size_bytes:
            self._bytes -= self._cached.popitem(last=False)[1].bytes
        return cached


def to_cached(encoded: Encoded) -> CachedVectors:
    """Return a read-only copy, with the token vectors as 8-bit integers."""
    pooled = np.array(encoded.pooled, np.float32)
    pooled.flags.writeable = False
    return CachedVectors(
        pooled,
        quantise_tokens(encoded.tokens),
        None if encoded.interaction_probabilities is None else np.array(encoded.interaction_probabilities),
    )


def from_cached(cached: CachedVectors) -> Encoded:
    """Return the vectors as they came from the model."""
    return Encoded(cached.pooled, dequantise_tokens(cached.tokens), cached.interaction_probabilities)


def _retrieve_exception(task: asyncio.Task[CachedVectors]) -> None:
    """Keep asyncio from logging a failure that no caller waits for any more."""
    if not task.cancelled():
        task.exception()
