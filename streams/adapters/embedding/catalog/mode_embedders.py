"""The embedders of modes: a loaded model with a mode's prefixes and a cache, or two models chosen by language.

The text alone decides which model embeds it; English texts need neither the other model nor its loading. Both models
give vectors of the same dimension that spread around 0, so texts of different models are about as similar as unrelated
ones. The cache: repeated and concurrent requests for a text cost one pass; a failure is never cached.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from agents.ports.models import Embedder
from agents.rules.text.non_english import is_non_english
from schemas.models.vectors import Encoded, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.inference.token_vectors import QuantisedTokens, dequantise_tokens, quantise_tokens

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

    @property
    def bytes(self) -> int:
        """The size of the arrays, without the objects around them."""
        return self.pooled.nbytes + self.tokens.nbytes


class VectorCache:
    """Caches passage vectors, least recently used out first."""

    def __init__(
        self,
        embed: Callable[[str, str, str], Awaitable[Encoded]],
        size: int = MAX_CACHED_TEXTS,
        size_bytes: int = MAX_CACHED_BYTES,
    ) -> None:
        self._embed = embed
        self._size = size
        self._size_bytes = size_bytes
        self._bytes = 0
        self._cached: OrderedDict[TextKey, CachedVectors] = OrderedDict()
        self._in_flight: dict[tuple[str, TextKey], asyncio.Task[CachedVectors]] = {}

    async def passage(self, text: str, prefix: str, boundary: str = "") -> Encoded:
        """Return the vectors of a passage; the pooled one is shared, and read-only.

        Users share cached vectors, but not queues: one user's text does not wait behind another's.
        """
        key = prefix, hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if (cached := self._cached.get(key)) is not None:
            self._cached.move_to_end(key)
            return _from_cached(cached)
        if (task := self._in_flight.get((boundary, key))) is None:
            task = self._in_flight[boundary, key] = asyncio.create_task(self._pass(key, text, boundary))
            # Otherwise asyncio logs a failure that no caller awaits.
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return _from_cached(await asyncio.shield(task))

    def clear(self) -> None:
        self._cached.clear()
        self._bytes = 0

    async def _pass(self, key: TextKey, text: str, boundary: str) -> CachedVectors:
        try:
            encoded = await self._embed(text, key[0], boundary)
        finally:
            del self._in_flight[boundary, key]
        pooled = np.array(encoded.pooled, np.float32)
        pooled.flags.writeable = False
        cached = CachedVectors(pooled, quantise_tokens(encoded.tokens))
        if (before := self._cached.pop(key, None)) is not None:
            self._bytes -= before.bytes
        self._cached[key] = cached
        self._bytes += cached.bytes
        while len(self._cached) > self._size or self._bytes > self._size_bytes:
            self._bytes -= self._cached.popitem(last=False)[1].bytes
        return cached


def _from_cached(cached: CachedVectors) -> Encoded:
    return Encoded(cached.pooled, dequantise_tokens(cached.tokens))


class LanguageRoutingEmbedder:
    """Implements `agents.ports.models.Embedder`."""

    def __init__(self, english: Embedder, multilingual: Callable[[], Embedder], multilingual_name: str) -> None:
        """Take the English model, and a getter of the other one, which raises ModelMissing while that is not loaded.

        `multilingual_name` identifies the other model and everything that determines its vectors, before it is loaded.
        """
        self._english = english
        self._multilingual = multilingual
        self._fingerprint = english.fingerprint.model_copy(update={"others": multilingual_name})

    @property
    def fingerprint(self) -> Fingerprint:
        return self._fingerprint

    async def passage(self, text: str, *, boundary: str = "") -> Encoded:
        return await self.model_for(text).passage(text, boundary=boundary)

    async def query(self, text: str, *, boundary: str = "") -> Encoded:
        return await self.model_for(text).query(text, boundary=boundary)

    def in_one_language(self, text: str) -> Embedder:
        """Return an embedder for parts of this text. Raises ModelMissing as `model_for`."""
        return OneLanguageEmbedder(self.model_for(text), self._fingerprint)

    def model_for(self, text: str) -> Embedder:
        """Return the model that embeds a text. Raises ModelMissing while it is not loaded."""
        return self._multilingual() if is_non_english(text) else self._english

    def other_language_model(self, text: str) -> Embedder:
        """Return the model that does not embed this text by default. Raises ModelMissing as `model_for`."""
        multilingual = self._multilingual()
        return self._english if is_non_english(text) else multilingual


@dataclass(frozen=True, slots=True)
class OneLanguageEmbedder:
    """Implements `agents.ports.models.Embedder` with a fixed model: a part may be too short for its language."""

    model: Embedder
    fingerprint: Fingerprint

    async def passage(self, text: str, *, boundary: str = "") -> Encoded:
        return await self.model.passage(text, boundary=boundary)

    async def query(self, text: str, *, boundary: str = "") -> Encoded:
        return await self.model.query(text, boundary=boundary)


class Prefixable(Protocol):
    """A loaded model that takes a prefix with each text; None is the model's own prefix."""

    @property
    def fingerprint(self) -> Fingerprint: ...

    async def passage(self, text: str, prefix: str | None = None, boundary: str = "") -> Encoded: ...

    async def query(self, text: str, prefix: str | None = None, boundary: str = "") -> Encoded: ...


class ModeEmbedder:
    """Implements `agents.ports.models.Embedder`. A prefix that is None is the model's own."""

    def __init__(
        self, model: Prefixable, recent: VectorCache, query_prefix: str | None, passage_prefix: str | None
    ) -> None:
        own = model.fingerprint
        self._model = model
        self._recent = recent
        self._query_prefix = query_prefix
        self._passage_prefix = own.passage_prefix if passage_prefix is None else passage_prefix
        self._fingerprint = own.model_copy(update={"passage_prefix": self._passage_prefix})

    @property
    def fingerprint(self) -> Fingerprint:
        return self._fingerprint

    async def passage(self, text: str, *, boundary: str = "") -> Encoded:
        return await self._recent.passage(text, self._passage_prefix, boundary)

    async def query(self, text: str, *, boundary: str = "") -> Encoded:
        return await self._model.query(text, self._query_prefix, boundary)
