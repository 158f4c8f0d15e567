"""A loaded model with the prefixes of one mode.

Enters: texts. Leaves: their vectors; those of passages come from the cache where possible. Guaranteed: modes with the
same passage prefix share vectors, whatever their query prefixes are.
"""

from typing import Protocol

from schemas.modes import Fingerprint
from schemas.vectors import Encoded
from streams.adapters.embedding.catalog.vector_cache import VectorCache


class Prefixable(Protocol):
    """A loaded model that takes a prefix with each text; None is the model's own prefix."""

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of passages with the model's own prefix."""
        ...

    async def passage(self, text: str, prefix: str | None = None) -> Encoded:
        """Embed a passage with this prefix."""
        ...

    async def query(self, text: str, prefix: str | None = None) -> Encoded:
        """Embed a query with this prefix."""
        ...


class ModeEmbedder:
    """Implements `agents.ports.Embedder`. A prefix that is None is the model's own."""

    def __init__(
        self, model: Prefixable, recent: VectorCache, query_prefix: str | None, passage_prefix: str | None
    ) -> None:
        """Take a loaded model and the cache of passages that all its modes share."""
        own = model.fingerprint
        self._model = model
        self._recent = recent
        self._query_prefix = query_prefix
        self._passage_prefix = own.passage_prefix if passage_prefix is None else passage_prefix
        self._fingerprint = own.model_copy(update={"passage_prefix": self._passage_prefix})

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of this mode's passages."""
        return self._fingerprint

    async def passage(self, text: str) -> Encoded:
        """Embed a passage; the pooled vector is read-only."""
        return await self._recent.passage(text, self._passage_prefix)

    async def query(self, text: str) -> Encoded:
        """Embed a query, ahead of all waiting passages."""
        return await self._model.query(text, self._query_prefix)
