"""One embedder for all languages: a small fast model for English, a multilingual one for the other languages.

Enters: texts. Leaves: vectors of one space. Guaranteed: the text alone decides which model embeds it, so the same text
always has the same vectors; English texts need neither the other model nor its loading.

Both models give vectors of the same dimension that spread around 0, so texts of different models are about as similar
as unrelated texts. A query is embedded by the model of its language; `other_language_model` returns the other one, for
a cross-lingual search.
"""

from collections.abc import Callable
from typing import Protocol

from agents.ports.embedder import Embedder
from agents.rules.text.non_english import is_non_english
from schemas.models.vectors import Encoded
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.catalog.vector_cache import VectorCache


class LanguageRoutingEmbedder:
    """Implements `agents.ports.Embedder`."""

    def __init__(self, english: Embedder, multilingual: Callable[[], Embedder], multilingual_name: str) -> None:
        """Take the English model, and a getter of the other one, which raises ModelMissing while that is not loaded.

        `multilingual_name` identifies the other model and everything that determines its vectors, before it is loaded.
        """
        self._english = english
        self._multilingual = multilingual
        self._fingerprint = english.fingerprint.model_copy(update={"others": multilingual_name})

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the vector space, which both models determine."""
        return self._fingerprint

    async def passage(self, text: str) -> Encoded:
        """Embed a passage. Raises ModelMissing while the model of its language is not loaded."""
        return await self.model_for(text).passage(text)

    async def query(self, text: str) -> Encoded:
        """Embed a query. Raises ModelMissing as `passage`."""
        return await self.model_for(text).query(text)

    def model_for(self, text: str) -> Embedder:
        """Return the model that embeds a text. Raises ModelMissing as `passage`."""
        return self._multilingual() if is_non_english(text) else self._english

    def other_language_model(self, text: str) -> Embedder:
        """Return the model that does not embed this text by default. Raises ModelMissing as `passage`."""
        multilingual = self._multilingual()
        return self._english if is_non_english(text) else multilingual


class Prefixable(Protocol):
    """A loaded model that takes a prefix with each text; None is the model's own prefix."""

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of passages with the model's own prefix."""

    async def passage(self, text: str, prefix: str | None = None) -> Encoded:
        """Embed a passage with this prefix."""

    async def query(self, text: str, prefix: str | None = None) -> Encoded:
        """Embed a query with this prefix."""


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
