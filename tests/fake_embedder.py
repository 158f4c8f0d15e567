"""An embedder without a model: words are hashed to directions, so texts that share words are similar.

Enters: texts. Leaves: their vectors. Guaranteed: what the port promises, by the same contract tests as the real one.
"""

import asyncio
import hashlib
import re

import numpy as np

from schemas.failures import Unavailable
from schemas.modes import Fingerprint
from schemas.vectors import Encoded, Matrix, Vector

WORD = re.compile(r"\w+")


class FakeEmbedder:
    """Implements `agents.ports.Embedder`. While `outage` is true every call raises `Unavailable`.

    `passages` and `queries` are the texts that it was given, in order.
    """

    def __init__(
        self,
        name: str = "fake",
        dim: int = 64,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_tokens: int = 256,
    ) -> None:
        """Take what a real one is configured with."""
        self.outage = False
        self.passages: list[str] = []
        self.queries: list[str] = []
        self._query_prefix = query_prefix
        self._words: dict[str, Vector] = {}
        self._one_at_a_time = asyncio.Lock()
        self._fingerprint = Fingerprint(
            embedder=name,
            file_sha256=hashlib.sha256(b"no file").hexdigest(),
            precision="fp32",
            dim=dim,
            pooling="mean",
            normalize=True,
            passage_prefix=passage_prefix,
            max_tokens=max_tokens,
        )

    @property
    def fingerprint(self) -> Fingerprint:
        """What decides where passages lie."""
        return self._fingerprint

    async def passage(self, text: str) -> Encoded:
        """Embed a text that is kept; passages wait for one another, a turn of the loop each, as they do for a core."""
        return await self.passage_with(self._fingerprint.passage_prefix, text)

    async def query(self, text: str) -> Encoded:
        """Embed a question at once."""
        return self.query_with(self._query_prefix, text)

    async def passage_with(self, prefix: str, text: str) -> Encoded:
        """As `passage`, with this prefix."""
        self.passages.append(text)
        async with self._one_at_a_time:
            await asyncio.sleep(0)
            return self._encode(prefix, text)

    def query_with(self, prefix: str, text: str) -> Encoded:
        """As `query`, with this prefix."""
        self.queries.append(text)
        return self._encode(prefix, text)

    async def close(self) -> None:
        """Nothing to release."""

    def _encode(self, prefix: str, text: str) -> Encoded:
        if self.outage:
            raise Unavailable("the embedder is out of order")
        spoken, kept = WORD.findall(prefix.lower()), WORD.findall(text.lower())
        rows = self._directions([*spoken, *kept][: self._fingerprint.max_tokens])
        pooled = rows.sum(axis=0) if len(rows) else self._direction("")
        return Encoded(pooled / np.linalg.norm(pooled), rows[len(spoken) :])

    def _directions(self, words: list[str]) -> Matrix:
        rows = [self._direction(word) for word in words]
        return np.stack(rows) if rows else np.empty((0, self._fingerprint.dim), np.float32)

    def _direction(self, word: str) -> Vector:
        if word not in self._words:
            digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
            drawn = np.random.default_rng(list(digest)).standard_normal(self._fingerprint.dim).astype(np.float32)
            self._words[word] = drawn / np.linalg.norm(drawn)
        return self._words[word]
