"""Decide which vectors of a memory stay in the index: those in the spaces of its mode's present and former embedders.

Everything else of the memory is removed, from all collections of the modes that it is or was in. So what is forgotten,
moved, edited or filtered leaves no vector in any space, and no record needs to name all of them.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from modestream_client.vocabulary import EmbeddingErrorCode

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.indexes import VectorIndex
from schemas.models.vectors import Encoded
from schemas.state.memories import Memory, VectorLocation
from schemas.state.modes import Fingerprint, VectorSpace, collection_name


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
    code: EmbeddingErrorCode | None = None
    held: tuple[str, ...] = ()
    beside: "EncodedMemory | None" = None
    is_release: bool = False

    @property
    def place(self) -> VectorLocation | None:
        if self.space is None or self.vectors is None:
            return None
        return VectorLocation(mode=self.space.mode, space=self.space.fingerprint.digest)


Collections = Mapping[str, Fingerprint]
"""The fingerprints of the existing collections, by name."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HeldVectors:
    """The part of `Embed` that keeps and removes vectors of other spaces."""

    spaces_at: Callable[[int], VectorSpaces]

    async def verify(
        self,
        index: VectorIndex,
        latest: Mapping[str, EncodedMemory],
        besides: Sequence[EncodedMemory],
        collections: Collections,
    ) -> dict[str, EncodedMemory]:
        """Return the memories with the other spaces that have a vector of their text: a disk may have been lost.

        `besides`: further vectors written together with these memories.
        """
        # The content hashes in each space that the memories hold, by mode and digest.
        wanted: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for due in latest.values():
            if due.memory is not None:
                for digest in due.held:
                    wanted[due.memory.mode, digest].append(due.memory_id)
        stored: dict[tuple[str, str], Mapping[str, str]] = {}
        for (mode, digest), ids in wanted.items():
            fingerprint = collections.get(collection_name(mode, digest))
            space = None if fingerprint is None else VectorSpace(mode, fingerprint)
            stored[mode, digest] = {} if space is None else await index.hashes(space, ids)
        made = {beside.memory_id: (beside.place.space,) for beside in besides if beside.place is not None}

        def held(encoded: EncodedMemory, memory: Memory) -> tuple[str, ...]:
            verified = [
                each for each in encoded.held if stored[memory.mode, each].get(encoded.memory_id) == memory.content_hash
            ]
            return tuple(dict.fromkeys((*made.get(encoded.memory_id, ()), *verified)))

        return {
            memory_id: encoded if encoded.memory is None else replace(encoded, held=held(encoded, encoded.memory))
            for memory_id, encoded in latest.items()
        }

    async def remove_others(
        self,
        index: VectorIndex,
        batch: Sequence[EncodedMemory],
        latest: Mapping[str, EncodedMemory],
        collections: Collections,
    ) -> None:
        """Remove every vector of these memories but those that belong to them.

        That includes vectors that a process wrote before it was killed without publishing the event: the mode may have
        had another embedder then, or may be deleted now, and no record has their location.
        """
        modes: defaultdict[str, set[str]] = defaultdict(set)
        for encoded in batch:
            memory = encoded.memory
            if encoded.is_release and memory is not None:
                # The vectors of a released memory stay if it has changed since, or its mode has a former embedder.
                is_held_again = self.spaces_at(encoded.partition).has_former(memory)
                if is_held_again or memory.embedding.status != "ready":
                    continue
            places = {place.mode for place in (*encoded.strays, encoded.place) if place is not None}
            modes[encoded.memory_id] |= places if memory is None else places | {memory.mode}
        locations = {encoded.memory_id: _locations(latest.get(encoded.memory_id, encoded)) for encoded in batch}
        for name, fingerprint in collections.items():
            space = VectorSpace.held_by(name, fingerprint)
            location = VectorLocation(mode=space.mode, space=fingerprint.digest)
            others = [
                memory_id
                for memory_id, concerned in modes.items()
                if space.mode in concerned and location not in locations[memory_id]
            ]
            if others and (stored := await index.hashes(space, others)):
                await index.delete(space, list(stored))


def _locations(encoded: EncodedMemory) -> set[VectorLocation]:
    if encoded.memory is None:
        return set()
    if encoded.is_release:
        return {location for location in (encoded.memory.embedding.place,) if location is not None}
    held = {VectorLocation(mode=encoded.memory.mode, space=digest) for digest in encoded.held}
    return held if encoded.place is None else held | {encoded.place}
