"""An embedder without a model: words are hashed to directions, so texts that share words are similar.

A word is a token with a fixed direction as its state; pooling and projection are those of real models.

Enters: texts. Leaves: their vectors. Guaranteed: what the port promises, by the same contract tests as the real one.
"""

import asyncio
import hashlib
import re
from functools import cache

import numpy as np

from agents.rules.text.passages import CUTTING
from schemas.failures import ModelMissing, Unavailable
from schemas.models.vectors import Encoded, Matrix, Spans, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.inference.token_vectors import TokenProjection, TokenVectors

WORD = re.compile(r"\w+")

plain_projection = cache(TokenProjection.plain)
"""The projection by a model's dimension, computed once: a test world has a dozen fake models."""

NO_TOKENS: Matrix = np.empty((0, 0), np.float32)


class FakeEmbedder:
    """Implements `agents.ports.models.Embedder`.

    While `outage` is true every call raises `Unavailable`, while `unloaded` is true a passage raises `ModelMissing` and
    a query `Unavailable`; texts with `rejected_word` raise ValueError. `passages` and `queries` are its inputs, in
    order. Without `tokens` it returns no token vectors, like models with pooled output.
    """

    def __init__(
        self,
        name: str = "fake",
        dim: int = 64,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_tokens: int = 256,
        tokens: bool = True,
        accent: str = "",
    ) -> None:
        """Words have the same directions only in models with the same `accent`."""
        self.outage = False
        self.unloaded = False
        self.rejected_word: str | None = None
        self.passages: list[str] = []
        self.queries: list[str] = []
        self._query_prefix = query_prefix
        self._accent = accent
        self._words: dict[str, Vector] = {}
        self._one_at_a_time = asyncio.Lock()
        self._tokens = TokenVectors(plain_projection(dim)) if tokens else None
        self._fingerprint = Fingerprint(
            embedder=name,
            file_sha256=hashlib.sha256(b"no file").hexdigest(),
            precision="fp32",
            dim=dim,
            pooling="mean",
            normalize=True,
            passage_prefix=passage_prefix,
            max_tokens=max_tokens,
            tokens=self._tokens.name if self._tokens else None,
            token_dim=self._tokens.dim if self._tokens else 0,
            passages=CUTTING,
        )

    @property
    def fingerprint(self) -> Fingerprint:
        return self._fingerprint

    async def passage(self, text: str, *, boundary: str = "") -> Encoded:
        """Embed a stored text; passages run one at a time, each after a turn of the event loop."""
        return await self.passage_with(self._fingerprint.passage_prefix, text)

    async def query(self, text: str, *, boundary: str = "") -> Encoded:
        return self.query_with(self._query_prefix, text)

    async def passage_with(self, prefix: str, text: str) -> Encoded:
        if self.unloaded:
            raise ModelMissing("the embedder is being loaded")
        self.passages.append(text)
        async with self._one_at_a_time:
            await asyncio.sleep(0)
            pooled, states, spans = self._states(prefix, text)
            return Encoded(pooled, self._tokens.of_passage(text, spans, states) if self._tokens else NO_TOKENS)

    def query_with(self, prefix: str, text: str) -> Encoded:
        if self.unloaded:
            raise Unavailable("the embedder is being loaded")
        self.queries.append(text)
        pooled, states, spans = self._states(prefix, text)
        tokens, spans = self._tokens.of_query(spans, states) if self._tokens else (NO_TOKENS, spans[:0])
        return Encoded(pooled, tokens, spans=spans)

    def change_file(self) -> None:
        self._fingerprint = self._fingerprint.model_copy(update={"file_sha256": "another file"})

    async def close(self) -> None:
        """Nothing to release."""

    def _states(self, prefix: str, text: str) -> tuple[Vector, Matrix, Spans]:
        """Return the pooled vector, and the states and spans of the text's own words."""
        if self.outage:
            raise Unavailable("the embedder is out of order")
        if self.rejected_word and self.rejected_word in text:
            raise ValueError(text)
        prefix_words, matches = WORD.findall(prefix), list(WORD.finditer(text))
        words = [*prefix_words, *(match.group() for match in matches)][: self._fingerprint.max_tokens]
        rows = self._directions([word.lower() for word in words])
        pooled = rows.sum(axis=0) if len(rows) else self._direction("")
        states = rows[len(prefix_words) :]
        spans = np.array([match.span() for match in matches], np.int32).reshape(-1, 2)[: len(states)]
        return pooled / np.linalg.norm(pooled), states, spans

    def _directions(self, words: list[str]) -> Matrix:
        rows = [self._direction(word) for word in words]
        return np.stack(rows) if rows else np.empty((0, self._fingerprint.dim), np.float32)

    def _direction(self, word: str) -> Vector:
        if word not in self._words:
            digest = hashlib.sha256((self._accent + word).encode("utf-8", "surrogatepass")).digest()
            drawn = np.random.default_rng(list(digest)).standard_normal(self._fingerprint.dim).astype(np.float32)
            self._words[word] = drawn / np.linalg.norm(drawn)
        return self._words[word]
