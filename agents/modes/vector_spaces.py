"""Resolve a mode to its embedder and vector space.

Reads the declarations at every call, so that a new one is effective from the next event on.
"""

from collections.abc import Iterable, Mapping

from agents.ports.embedder import Embedder, Embedders
from agents.ports.stores import Modes
from agents.rules.modes.declaring import require_mode
from agents.rules.text.embedding_text import embedding_text
from schemas.failures import ModelMissing, Rejected
from schemas.scopes import PROJECT_FIELD
from schemas.state.memories import Memory
from schemas.state.modes import Mode, VectorSpace


class VectorSpaces:
    """Modes, embedders and vector spaces, by boundary."""

    def __init__(self, modes: Modes, embedders: Embedders) -> None:
        self._modes = modes
        self._embedders = embedders

    def mode(self, boundary: str, name: str, scope: Mapping[str, str]) -> Mode:
        """Return the mode of this name in a scope. Raises Rejected `unknown_mode`."""
        return require_mode(self._modes.get(boundary), name, scope.get(PROJECT_FIELD), "mode")

    def visible(self, boundary: str, projects: Iterable[str] | None) -> list[Mode]:
        """Return the modes of these projects, None for all."""
        return self._modes.get(boundary).visible(projects)

    def resolve(self, mode: Mode) -> tuple[Embedder, VectorSpace]:
        """Return the embedder of a mode and its vector space. Raises ModelMissing while the model is not loaded."""
        return _with_space(mode, self._embedders.of(mode))

    def cross_lingual(self, mode: Mode, text: str) -> Embedder | None:
        """Return the mode's multilingual model, as `Embedders.cross_lingual` does."""
        return self._embedders.cross_lingual(mode, text)

    def embedder(self, mode: Mode, text: str) -> Embedder:
        """Return the embedder of a mode for this text's language. Raises ModelMissing while it is not loaded."""
        return self._embedders.for_text(mode, text)

    def of(self, memory: Memory) -> tuple[Embedder, VectorSpace]:
        """Return a memory's embedder and vector space. Raises Rejected if its mode is deleted, or ModelMissing."""
        mode = self.mode(memory.boundary, memory.mode, memory.scope)
        return _with_space(mode, self._embedders.for_text(mode, embedding_text(memory)))

    def digest(self, memory: Memory) -> str | None:
        """Return the digest of the space in which a memory's vector is due; None while that is unknown."""
        try:
            return self.of(memory)[1].fingerprint.digest
        except (ModelMissing, Rejected):
            return None


def _with_space(mode: Mode, embedder: Embedder) -> tuple[Embedder, VectorSpace]:
    return embedder, VectorSpace(mode.name, embedder.fingerprint)
