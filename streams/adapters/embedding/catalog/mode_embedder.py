"""One model as one mode sees it: with the mode's prefixes.

Enters: texts. Leaves: their vectors, passages' from the latest ones where they are there. Guaranteed: modes with the
same passage prefix share vectors, whatever their query prefixes are.
"""

from typing import Protocol

from schemas.modes import Fingerprint
from schemas.vectors import Encoded
from streams.adapters.embedding.catalog.recent_vectors import VectorCache


class Prefixable(Protocol):
    """A loaded model that takes a prefix with each text."""

    @property
    def fingerprint(self) -> Fingerprint:
        """What decides where passages with the model's own prefix lie."""
        ...

    async def passage(self, text: str, prefix: str | None = None) -> Encoded:
        """Embed a text that is kept, with this prefix in place of the model's own."""
        ...

    async def query(self, text: str, prefix: str | None = None) -> Encoded:
        """Embed a question, with this prefix in place of the model's own."""
        ...


class ModeEmbedder:
    """Implements `agents.ports.Embedder`. A prefix that is None is the model's own."""

    def __init__(
        self, model: Prefixable, recent: VectorCache, query_prefix: str | None, passage_prefix: str | None
    ) -> None:
        """Take a loaded model and the vectors that all its modes share."""
        own = model.fingerprint
        self._model = model
        self._recent = recent
        self._query_prefix = query_prefix
        self._passage_prefix = own.passage_prefix if passage_prefix is None else passage_prefix
        self._fingerprint = own.model_copy(update={"passage_prefix": self._passage_prefix})

    @property
    def fingerprint(self) -> Fingerprint:
        """What decides where this mode's passages lie."""
        return self._fingerprint

    async def passage(self, text: str) -> Encoded:
        """Embed a text that is kept; the pooled vector is read-only."""
        return await self._recent.passage(text, self._passage_prefix)

    async def query(self, text: str) -> Encoded:
        """Embed a question, ahead of any passages that are waiting."""
        return await self._model.query(text, self._query_prefix)
