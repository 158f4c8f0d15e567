"""Decides what a job has to do: which vectors are made again, and which lie where nobody wants them.

Enters: a job and the records, words and vectors of its boundary. Leaves: what the keeper of memories is to be told. It
writes nothing itself. While the index can't be reached it raises `Unavailable`, and the caller tries again.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import numpy as np

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.clock import Clock
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.ports.vector_index import VectorIndex
from agents.rules.memory.embedding_status import is_in_flight
from agents.rules.memory.forgetting import list_ids, list_ids_in_mode
from agents.rules.memory.maintaining import (
    JobOutcome,
    MaintenanceAction,
    is_in_other_space,
    job_outcome,
    maintenance_action,
)
from schemas.events import Embedded
from schemas.jobs import Job
from schemas.memories import Memory, VectorLocation, index_names
from schemas.modes import VectorSpace, collection_name
from schemas.vectors import MemoryFilter


@dataclass(frozen=True, slots=True)
class InspectedMemory:
    """A memory as a job finds it, and what is due."""

    memory: Memory
    due: MaintenanceAction
    is_stale: bool

    @property
    def requested_status(self) -> str:
        """How its vector is asked for: one that is right until then keeps its memory found by meaning."""
        return "again" if self.memory.embedding.status == "ready" and not self.is_stale else "stale"


class Maintain:
    """Jobs in, what is due out."""

    def __init__(
        self,
        partition: int,
        memories: Memories,
        words: LexicalIndex,
        index: VectorIndex,
        spaces: VectorSpaces,
        clock: Clock,
    ) -> None:
        self._partition = partition
        self._memories = memories
        self._words = words
        self._index = index
        self._spaces = spaces
        self._clock = clock

    def affected_ids(self, job: Job) -> list[str]:
        """The ids of all memories of the job's boundary, or of one mode there: turns, then items."""
        rosters = [self._words.memory_columns(shelf) for shelf in index_names(job.scope.boundary)]
        return [
            one
            for each in rosters
            for one in (list_ids(each) if job.mode is None else list_ids_in_mode(each, job.mode))
        ]

    def modes(self, job: Job) -> list[str]:
        """The names of the modes that a job goes through."""
        visible = self._spaces.visible(job.scope.boundary, None)
        return [job.mode] if job.mode is not None else sorted({mode.name for mode in visible})

    async def inspect(self, job: Job, memory_ids: Sequence[str]) -> list[InspectedMemory]:
        """What is due for these memories, as far as they are there."""
        known = [self._memories.get(memory_id) for memory_id in memory_ids]
        memories = [memory for memory in known if memory is not None]
        missing = await self._missing(memories) if job.kind == "reconcile" else set()
        return [self._looked(job, memory, is_missing=memory.memory_id in missing) for memory in memories]

    def outcome_of(self, looked: InspectedMemory) -> JobOutcome | None:
        """What became of a memory since it was looked at; None while that is not known."""
        now = self._memories.get(looked.memory.memory_id)
        return job_outcome(looked.memory, now, None if now is None else self._spaces.digest(now))

    def reembed_event(self, looked: InspectedMemory) -> Embedded:
        """What the keeper is told of a memory whose vector is to be made."""
        memory = looked.memory
        return Embedded.model_validate(
            {
                "memory_id": memory.memory_id,
                "content_hash": memory.content_hash,
                "mode": memory.mode,
                "status": looked.requested_status,
                "at": self._clock.now(),
            }
        )

    async def orphans(self, job: Job) -> AsyncIterator[Embedded]:
        """What the keeper is told of vectors that lie where no record says: they are there, and it knows what to do."""
        for name, fingerprint in (await self._index.spaces()).items():
            space = VectorSpace.held_by(name, fingerprint)
            if job.mode in (None, space.mode):
                place = VectorLocation(mode=space.mode, space=fingerprint.digest)
                for memory_id in await self._lying(space, job):
                    if (found := self._orphan(memory_id, place)) is not None:
                        yield found

    async def _lying(self, space: VectorSpace, job: Job) -> list[str]:
        """The ids of a boundary's points in a space: a search in any direction that leaves none out."""
        anywhere = np.eye(1, space.fingerprint.dim, dtype=np.float32)[0]
        most = await self._index.count(space, self._partition)
        wheres = [MemoryFilter(shelf) for shelf in index_names(job.scope.boundary)] if most else []
        found = [await self._index.search(space, anywhere, where, most) for where in wheres]
        return [one.memory_id for each in found for one in each]

    def _orphan(self, memory_id: str, place: VectorLocation) -> Embedded | None:
        memory = self._memories.get(memory_id)
        digest = None if memory is None else self._spaces.digest(memory)
        # One that is on its way is emptied from where it was, and is in its new place before its record says so.
        if memory is not None and (memory.embedding.place == place or is_in_flight(memory) or digest is None):
            return None
        is_due_here = memory is not None and place == VectorLocation(mode=memory.mode, space=digest or "")
        return Embedded(
            memory_id=memory_id,
            content_hash=memory.content_hash if memory else "",
            mode=place.mode,
            status="stale" if is_due_here else "ready",
            space=place.space,
            at=self._clock.now(),
        )

    def _looked(self, job: Job, memory: Memory, *, is_missing: bool) -> InspectedMemory:
        digest = self._spaces.digest(memory)
        is_stale = is_missing or is_in_other_space(memory, digest)
        return InspectedMemory(memory, maintenance_action(job, memory, digest, is_missing=is_missing), is_stale)

    async def _missing(self, memories: Sequence[Memory]) -> set[str]:
        """Those of these memories whose vector is not where their record says, or is that of another text."""
        placed: defaultdict[VectorLocation, list[Memory]] = defaultdict(list)
        for memory in memories:
            if memory.embedding.status == "ready" and memory.embedding.place is not None:
                placed[memory.embedding.place].append(memory)
        fingerprints, missing = await self._index.spaces(), set()
        for place, there in placed.items():
            kept = fingerprints.get(collection_name(place.mode, place.space))
            ids = [memory.memory_id for memory in there]
            hashes = {} if kept is None else await self._index.hashes(VectorSpace(place.mode, kept), ids)
            missing |= {one.memory_id for one in there if hashes.get(one.memory_id) != one.content_hash}
        return missing
