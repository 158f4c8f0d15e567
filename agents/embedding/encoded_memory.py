"""A memory on its way into the vector index."""

from dataclasses import dataclass

from schemas.models.vectors import Encoded
from schemas.state.memories import Memory, VectorLocation
from schemas.state.modes import VectorSpace


@dataclass(frozen=True, slots=True)
class EncodedMemory:
    """A memory with its vectors and their space, or with an error; `strays` are locations of outdated vectors.

    `memory` is None for a forgotten one; one that is not searchable has no vectors. `held` are digests of other spaces
    of its mode with a vector of its text, which stay. `beside` is the memory with a vector of its mode's former
    embedder, made as well while that one serves. `is_release`: nothing is due but to remove the other vectors.
    """

    memory_id: str
    strays: frozenset[VectorLocation]
    memory: Memory | None = None
    partition: int = 0
    space: VectorSpace | None = None
    vectors: Encoded | None = None
    error: str | None = None
    held: tuple[str, ...] = ()
    beside: "EncodedMemory | None" = None
    is_release: bool = False

    @property
    def place(self) -> VectorLocation | None:
        """The location of the new vector."""
        if self.space is None or self.vectors is None:
            return None
        return VectorLocation(mode=self.space.mode, space=self.space.fingerprint.digest)
