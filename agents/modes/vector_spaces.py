"""Where the vectors of a mode lie, and what makes them: a mode as its user declared it, with its embedder.

Reads what is declared at every call, so that a declaration holds from the next event on.
"""

from collections.abc import Iterable, Mapping

from agents.ports.embedder import Embedder, Embedders
from agents.ports.stores import Modes
from agents.rules.modes.declaring import require_mode
from agents.rules.text.embedding_text import embedding_text
from schemas.failures import ModelMissing, Rejected
from schemas.memories import Memory
from schemas.modes import Mode, VectorSpace
from schemas.scopes import PROJECT_FIELD


class VectorSpaces:
    """Modes, embedders and vector spaces, by boundary."""

    def __init__(self, modes: Modes, embedders: Embedders) -> None:
        self._modes = modes
        self._embedders = embedders

    def mode(self, boundary: str, name: str, scope: Mapping[str, str]) -> Mode:
        """The mode of that name that holds in a scope. Raises Rejected `unknown_mode`."""
        return require_mode(self._modes.get(boundary), name, scope.get(PROJECT_FIELD), "mode")

    def visible(self, boundary: str, projects: Iterable[str] | None) -> list[Mode]:
        """The modes that hold in any of these projects, None for all."""
        return self._modes.get(boundary).visible(projects)

    def resolve(self, mode: Mode) -> tuple[Embedder, VectorSpace]:
        """The embedder of a mode and the space of its vectors. Raises ModelMissing while its model is not loaded."""
        return _with_space(mode, self._embedders.of(mode))

    def cross_lingual(self, mode: Mode, text: str) -> Embedder | None:
        """The model that made a mode's vectors of languages unlike that of this text; None as `Embedders` says."""
        return self._embedders.cross_lingual(mode, text)

    def of(self, memory: Memory) -> tuple[Embedder, VectorSpace]:
        """The embedder and the space of a memory. Raises Rejected where its mode is gone, ModelMissing."""
        mode = self.mode(memory.boundary, memory.mode, memory.scope)
        return _with_space(mode, self._embedders.for_text(mode, embedding_text(memory)))

    def digest(self, memory: Memory) -> str | None:
        """The digest of the space that a memory belongs into; None while that is not known."""
        try:
            return self.of(memory)[1].fingerprint.digest
        except (ModelMissing, Rejected):
            return None


def _with_space(mode: Mode, embedder: Embedder) -> tuple[Embedder, VectorSpace]:
    return embedder, VectorSpace(mode.name, embedder.fingerprint)
