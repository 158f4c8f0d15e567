"""Jobs over vectors: which are made again, which points are orphans, and whether a mode's embedder beats `general`.

Enters: a job and the records, lexical index and vectors of its scope or boundary. Leaves: `Embedded` events for
`agents.memory`, or a comparison. Writes nothing. Raises `Unavailable` while the vector index is not reachable; the
caller retries.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.modes.vector_spaces import VectorSpaces, encode_memory
from agents.ports.clock import Clock
from agents.ports.indexes import LexicalIndex, VectorIndex
from agents.ports.stores import Memories
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
from agents.rules.modes.embedder_comparison import MIN_TURNS, SampledTurn, compare, describe, sample_turns
from agents.rules.text.passages import embedding_text
from schemas.failures import ModelMissing, Unavailable
from schemas.internal.changes import Job
from schemas.internal.events import Embedded
from schemas.models.vectors import MemoryFilter, Vector
from schemas.state.memories import Memory, VectorLocation, index_names
from schemas.state.modes import GENERAL, GENERAL_MODE, Mode, VectorSpace, collection_name


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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
        """Return the names of a job's modes, without modes deleted or forgotten since it began."""
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
        """Return the ids of memories whose vector at the recorded location is missing or of another text."""
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


MAX_MODES = 8
"""Modes of one job: some minutes of the models."""

VectorPair = tuple[Vector, Vector]
"""The vectors of one turn: by the mode's embedder, by `general`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CompareEmbedders:
    """Jobs in, comparisons out."""

    memories: Memories
    words: LexicalIndex
    spaces: VectorSpaces

    def modes(self, job: Job) -> list[Mode]:
        """Return the mode of a job, or those with an embedder of their own, by name; a project's before the user's."""
        projects = None if job.all_projects else (job.scope.project_id,)
        visible = self.spaces.visible(job.scope.boundary, projects)
        if job.all_projects:
            visible = visible[::-1]
        by_name = {mode.name: mode for mode in visible}
        named = [mode for name, mode in sorted(by_name.items()) if job.mode in (None, name)]
        return [mode for mode in named if job.mode is not None or mode.embedder != GENERAL][:MAX_MODES]

    def sample(self, job: Job, mode: Mode) -> list[SampledTurn]:
        """Return the turns to compare; empty if the mode declares no embedder."""
        if mode.embedder == GENERAL:
            return []
        scope = None if job.all_projects else job.scope.model_dump()
        columns = self.words.memory_columns(job.scope.boundary)
        return sample_turns(columns, lambda kind: kind.mode == mode.name and scope in (None, dict(kind.scope)))

    async def encode(self, turn: SampledTurn, mode: Mode) -> VectorPair | None:
        """Embed a turn with both models; None if it was forgotten, or a model can't embed it.

        Raises ModelMissing while a model is not loaded, Unavailable while one does not answer.
        """
        memory = self.memories.get(turn.memory_id)
        if memory is None:
            return None
        text = embedding_text(memory)
        of_mode, general = self.spaces.embedder(mode, text), self.spaces.embedder(GENERAL_MODE, text)
        try:
            first, second = await encode_memory(of_mode, memory), await encode_memory(general, memory)
        except (ModelMissing, Unavailable):
            raise
        except Exception:  # a text that a model refuses is marked `failed` when it is stored
            return None
        return first.pooled, second.pooled

    async def conclude(
        self, mode: Mode, sample: Sequence[SampledTurn], vectors: Sequence[VectorPair | None]
    ) -> dict[str, Any]:
        pairs = [(turn, pair) for turn, pair in zip(sample, vectors, strict=True) if pair is not None]
        turns = [turn for turn, _ in pairs]
        if mode.embedder == GENERAL or len(pairs) < MIN_TURNS:
            return describe(
                mode.embedder, turns, "same_embedder" if mode.embedder == GENERAL else "too_few_turns", None
            )
        of_mode, general = (np.stack([pair[side] for _, pair in pairs]) for side in (0, 1))
        conversations = np.array([turn.conversation for turn in turns], np.int64)
        compared = await asyncio.to_thread(compare, of_mode, general, conversations)
        return describe(mode.embedder, turns, compared.verdict, compared)
