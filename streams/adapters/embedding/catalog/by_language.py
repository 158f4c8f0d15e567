"""One embedder for all languages: a small fast model for English, a multilingual one for what that can't read.

Enters: texts. Leaves: vectors of one space. Guaranteed: a text always goes to the same model, whatever else is there,
so that the same text has the same vectors; nobody who writes English waits for the other model, or is kept from
vectors by its absence.

Both models give vectors of the same length that spread around 0, so that texts of different models are about as alike
as strangers. By itself a question is read by the model of its language; `other_language_model` gives the other one, which reads
it for what was said in the other language.
"""

from collections.abc import Callable

from agents.ports.embedder import Embedder
from agents.rules.text.non_english import is_non_english
from schemas.modes import Fingerprint
from schemas.vectors import Encoded


class LanguageRoutingEmbedder:
    """Implements `agents.ports.Embedder`."""

    def __init__(self, english: Embedder, others: Callable[[], Embedder], others_name: str) -> None:
        """Take the model of English, and what gives the other (it raises ModelMissing while that is not loaded).

        `others_name` names the other model and all that decides on its vectors, before it is loaded.
        """
        self._english = english
        self._others = others
        self._fingerprint = english.fingerprint.model_copy(update={"others": others_name})

    @property
    def fingerprint(self) -> Fingerprint:
        """What decides where passages lie: both models."""
        return self._fingerprint

    async def passage(self, text: str) -> Encoded:
        """Embed a text that is kept. Raises ModelMissing while the model of its language is not loaded."""
        return await self.model_for(text).passage(text)

    async def query(self, text: str) -> Encoded:
        """Embed a question. Raises ModelMissing as above."""
        return await self.model_for(text).query(text)

    def model_for(self, text: str) -> Embedder:
        """The model that reads a text. Raises ModelMissing as above."""
        return self._others() if is_non_english(text) else self._english

    def other_language_model(self, text: str) -> Embedder:
        """The model that does not read this text by itself, but may be asked to. Raises ModelMissing as above."""
        others = self._others()
        return self._english if is_non_english(text) else others
