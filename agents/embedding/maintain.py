"""Plan maintenance jobs: which vectors are made again, and which points are orphans.

Enters: a job and the records, lexical index and vectors of its scope or boundary. Leaves: `Embedded` events for
`agents.memory`. Writes nothing. Raises `Unavailable` while the vector index is not reachable; the caller retries.
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
from agents.rules.memory.embedding_status import (
    JobOutcome,
    MaintenanceAction,
    is_in_flight,
    is_in_other_space,
    is_located,
    job_outcome,
    maintenance_action,
)
from agents.rules.memory.visibility import list_ids_of_job
from schemas.internal.changes import Job
from schemas.internal.events import Embedded
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import Memory, VectorLocation, index_names
from schemas.state.modes import VectorSpace, collection_name


@dataclass(frozen=True, slots=True)
class InspectedMemory:
    """A memory at inspection time, and the action that is due."""

    memory: Memory
    due: MaintenanceAction
    is_stale: bool

    @property
    def requested_status(self) -> str:
        """The status that requests the vector: `again` keeps a valid vector searchable until it is replaced."""
        return "again" if self.memory.embedding.status == "ready" and not self.is_stale else "stale"


@dataclass(frozen=True, slots=True)
class Maintain:
    """Jobs in, due actions out."""

    partition: int
    memories: Memories
    words: LexicalIndex
    index: VectorIndex
    spaces: VectorSpaces
    clock: Clock

    def affected_ids(self, job: Job) -> list[str]:
        """Return the ids of all memories that the job covers: turns, then items."""
        indexes = [self.words.memory_columns(name) for name in index_names(job.scope.boundary)]
        return [memory_id for each in indexes for memory_id in list_ids_of_job(each, job)]

    def modes(self, job: Job) -> list[str]:
        """Return the names of a job's modes, without one that was deleted or forgotten since the job began."""
        visible = self.spaces.visible(job.scope.boundary, None if job.all_projects else (job.scope.project_id,))
        return sorted({mode.name for mode in visible if job.mode in (None, mode.name)})

    async def inspect(self, job: Job, memory_ids: Sequence[str]) -> list[InspectedMemory]:
        """Return the due actions for the existing ones of these memories."""
        existing = [self.memories.get(memory_id) for memory_id in memory_ids]
        memories = [memory for memory in existing if memory is not None]
        missing = await self._missing(memories) if job.kind in ("reconcile", "verify") else set()
        inspected: list[InspectedMemory] = []
        for memory in memories:
            digest, is_missing = self.spaces.digest(memory), memory.memory_id in missing
            due = maintenance_action(job, memory, digest, is_missing=is_missing)
            inspected.append(InspectedMemory(memory, due, is_missing or is_in_other_space(memory, digest)))
        return inspected

    def outcome_of(self, inspected: InspectedMemory) -> JobOutcome | None:
        """Return the outcome for a memory since its inspection; None while it is pending."""
        now = self.memories.get(inspected.memory.memory_id)
        return job_outcome(inspected.memory, now, None if now is None else self.spaces.digest(now))

    def reembed_event(self, inspected: InspectedMemory) -> Embedded:
        """Return the event that requests a memory's vector."""
        memory = inspected.memory
        return Embedded.model_validate(
            {
                "memory_id": memory.memory_id,
                "content_hash": memory.content_hash,
                "mode": memory.mode,
                "status": inspected.requested_status,
                "at": self.clock.now(),
            }
        )

    async def orphans(self, job: Job) -> AsyncIterator[Embedded]:
        """Yield an event for each vector in a location that no record has; `agents.memory` requests its removal."""
        for name, fingerprint in (await self.index.spaces()).items():
            space = VectorSpace.held_by(name, fingerprint)
            if job.mode in (None, space.mode):
                location = VectorLocation(mode=space.mode, space=fingerprint.digest)
                # By a search without an effective limit.
                anywhere = np.eye(1, space.fingerprint.dim, dtype=np.float32)[0]
                most = await self.index.count(space, self.partition)
                scope = {} if job.all_projects else {field: (value,) for field, value in job.scope.model_dump().items()}
                wheres = [MemoryFilter(name, scope) for name in index_names(job.scope.boundary)] if most else []
                nearest = [await self.index.search(space, anywhere, where, most) for where in wheres]
                for memory_id in [point.memory_id for each in nearest for point in each]:
                    if (event := self._orphan(memory_id, location)) is not None:
                        yield event

    def _orphan(self, memory_id: str, location: VectorLocation) -> Embedded | None:
        memory = self.memories.get(memory_id)
        digest = None if memory is None else self.spaces.digest(memory)
        if memory is not None and not memory.visibility.searchable:
            digest = ""
        # While in flight, a vector is removed from its old location and reaches the new one before the record does.
        elif memory is not None and (is_located(memory, location) or is_in_flight(memory) or digest is None):
            return None
        is_due_here = memory is not None and location == VectorLocation(mode=memory.mode, space=digest or "")
        return Embedded(
            memory_id=memory_id,
            content_hash=memory.content_hash if memory else "",
            mode=location.mode,
            status="stale" if is_due_here else "ready",
            space=location.space,
            at=self.clock.now(),
        )

    async def _missing(self, memories: Sequence[Memory]) -> set[str]:
        """Return the ids of memories without a vector in their record's location, or with that of another text."""
        by_place: defaultdict[VectorLocation, list[Memory]] = defaultdict(list)
        for memory in memories:
            if memory.embedding.status == "ready" and memory.embedding.place is not None:
                by_place[memory.embedding.place].append(memory)
        fingerprints, missing = await self.index.spaces(), set()
        for location, expected in by_place.items():
            fingerprint = fingerprints.get(collection_name(location.mode, location.space))
            ids = [memory.memory_id for memory in expected]
            space = None if fingerprint is None else VectorSpace(location.mode, fingerprint)
            hashes = {} if space is None else await self.index.hashes(space, ids)
            missing |= {memory.memory_id for memory in expected if hashes.get(memory.memory_id) != memory.content_hash}
        return missing
