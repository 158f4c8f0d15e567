"""Resolve a mode to its embedder and vector space, and make the vectors of its memories.

Declarations are read at every call, so that a new one is effective from the next event on.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agents.ports.indexes import LexicalIndex
from agents.ports.models import Embedder, Embedders
from agents.ports.stores import Modes
from agents.rules.modes.declaring import awaits_declared, require_mode
from agents.rules.text.passages import embedded_passages, embedding_text
from schemas.failures import ModelMissing, Rejected
from schemas.models.vectors import Encoded, PassageVectors
from schemas.scopes import PROJECT_FIELD
from schemas.state.memories import Memory, index_names
from schemas.state.modes import Mode, VectorSpace


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VectorSpaces:
    """Modes, embedders and vector spaces, by boundary.

    `words` says which memories have which vectors; without it no former embedder serves.
    """

    modes: Modes
    embedders: Embedders
    words: LexicalIndex | None = None

    def mode(self, boundary: str, name: str, scope: Mapping[str, str]) -> Mode:
        """Return the mode of this name in a scope. Raises Rejected `unknown_mode`."""
        return require_mode(self.modes.get(boundary), name, scope.get(PROJECT_FIELD), "mode")

    def visible(self, boundary: str, projects: Iterable[str] | None) -> list[Mode]:
        """Return the modes of these projects, None for all."""
        return self.modes.get(boundary).visible(projects)

    def resolve(self, mode: Mode) -> tuple[Embedder, VectorSpace]:
        """Return the embedder of a mode and its vector space. Raises ModelMissing while the model is not loaded."""
        return _with_space(mode, self.embedders.of(mode))

    def former_serves(self, boundary: str, mode: Mode) -> bool:
        """True while a mode's memories have vectors of its former embedder that its declared one has not made yet."""
        if mode.former is None or self.words is None:
            return False
        declared = self.modes.get(boundary)
        try:
            digest = self.resolve(mode)[1].fingerprint.digest
        except ModelMissing:
            digest = None
        indexes = map(self.words.memory_columns, index_names(boundary))
        return any(awaits_declared(columns, declared, mode, digest) for columns in indexes)

    def has_former(self, memory: Memory) -> bool:
        """True if the memory's mode keeps the vectors of a former embedder."""
        mode = self.modes.get(memory.boundary).find(memory.mode, memory.scope.get(PROJECT_FIELD))
        return mode is not None and mode.former is not None

    def awaits_declared(self, memory: Memory) -> bool:
        """True while the former embedder of a memory's mode serves."""
        return self.former_serves(memory.boundary, self.mode(memory.boundary, memory.mode, memory.scope))

    def serving(self, boundary: str, mode: Mode) -> Mode:
        """Return a mode with the embedder by which questions are ranked: the former, if it is loaded and needed.

        It is needed while it serves, and while the declared one is not loaded, as after a restart.
        """
        former = mode.with_former
        if former is None:
            return mode
        is_needed = self.former_serves(boundary, mode) or not self._is_loaded(mode)
        return former if is_needed and self._is_loaded(former) else mode

    def _is_loaded(self, mode: Mode) -> bool:
        try:
            self.resolve(mode)
        except ModelMissing:
            return False
        return True

    def former_of(self, memory: Memory) -> tuple[Embedder, VectorSpace] | None:
        """Return the former embedder of a memory's mode and its space; None without one, or while it is not loaded."""
        former = self.mode(memory.boundary, memory.mode, memory.scope).with_former
        try:
            return (
                None if former is None else _with_space(former, self.embedders.for_text(former, embedding_text(memory)))
            )
        except ModelMissing:
            return None

    def cross_lingual(self, mode: Mode, text: str) -> Embedder | None:
        """Return the mode's multilingual model, as `Embedders.cross_lingual` does."""
        return self.embedders.cross_lingual(mode, text)

    def embedder(self, mode: Mode, text: str) -> Embedder:
        """Return the embedder of a mode for this text's language. Raises ModelMissing while it is not loaded."""
        return self.embedders.for_text(mode, text)

    def of(self, memory: Memory) -> tuple[Embedder, VectorSpace]:
        """Return a memory's embedder and vector space. Raises Rejected if its mode is deleted, or ModelMissing."""
        mode = self.mode(memory.boundary, memory.mode, memory.scope)
        return _with_space(mode, self.embedders.for_text(mode, embedding_text(memory)))

    def digest(self, memory: Memory) -> str | None:
        """Return the digest of the space that a memory's vector belongs in; None while it is unknown."""
        try:
            return self.of(memory)[1].fingerprint.digest
        except (ModelMissing, Rejected):
            return None


def _with_space(mode: Mode, embedder: Embedder) -> tuple[Embedder, VectorSpace]:
    return embedder, VectorSpace(mode.name, embedder.fingerprint)


async def encode_memory(embedder: Embedder, memory: Memory) -> Encoded:
    """Return a memory's vectors, by an embedder for its text. Raises what the embedder raises."""
    passages = embedded_passages(memory)
    if not passages:
        return await embedder.passage(embedding_text(memory), boundary=memory.boundary)
    return _joined(await asyncio.gather(*(embedder.passage(text, boundary=memory.boundary) for text in passages)))


def _joined(passages: Sequence[Encoded]) -> Encoded:
    """Return a text's vectors, made from its passages' vectors.

    The pooled one is their mean, and shorter than they are: its product with a question is the mean of their cosines.
    Scaled to length 1 it would be near to every question about its topic, and long replies would come first: on chats
    with an assistant that finds 4 points less.
    """
    counts = np.array([len(passage.tokens) for passage in passages], np.int64)
    tokens = np.concatenate([passage.tokens for passage in passages])
    vectors = PassageVectors(np.stack([passage.pooled for passage in passages]), counts)
    return Encoded(vectors.mean(), tokens, passages=vectors)
