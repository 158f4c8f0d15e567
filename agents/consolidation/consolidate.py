"""Decides what a consolidation does: which turns take part, and what is distilled from those that say the same.

Enters: a trigger, and the records, words and vectors of its scope. Leaves: what the keeper of memories is to be told.
It writes no memory itself. Only turns of the trigger's scope are looked at, one mode at a time. The run is given by its
id and by where its turns end, so that one that comes again decides the same. While the index can't be reached it raises
`Unavailable`, and the caller tries again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.consolidation.deduplicate import Deduplicate
from agents.consolidation.summarise import ClusterSummary, Summarise
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.consolidation_run import ConsolidationRun
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.ports.vector_index import VectorIndex
from agents.rules.consolidation.candidates import TurnCluster, is_in_run, list_distillable_turns
from agents.rules.consolidation.distillation import Source, distilled_memory, source_of
from agents.rules.memory.embedding_status import is_in_flight
from agents.rules.memory.identity import derive_distilled_id
from agents.rules.memory.superseding import SupersedeState, supersede_state
from agents.rules.modes.declaring import unknown_mode_error
from schemas.consolidation import ConsolidationTrigger, Distilled
from schemas.modes import VectorSpace
from schemas.scopes import PROJECT_FIELD
from schemas.vectors import Matrix


@dataclass(frozen=True, slots=True)
class EligibleTurns:
    """Turns that take part, and how many have no vector yet."""

    sources: list[Source]
    waiting: int


@dataclass(frozen=True, slots=True)
class DistilledCluster:
    """What is distilled from a cluster, and what writing it has cost."""

    event: Distilled
    told: ClusterSummary


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one run may take: seconds, and tokens of language models."""

    seconds: float
    tokens: int


NO_LIMITS = RunLimits(float("inf"), 1_000_000_000)
"""No bounds."""


class Consolidate:
    """Triggers in, what is distilled out."""

    def __init__(
        self,
        memories: Memories,
        words: LexicalIndex,
        index: VectorIndex,
        spaces: VectorSpaces,
        distil: Summarise,
        evolve: Deduplicate,
        bounds: RunLimits = NO_LIMITS,
    ) -> None:
        self._memories = memories
        self._words = words
        self._index = index
        self._spaces = spaces
        self._distil = distil
        self.bounds = bounds
        self.evolve = evolve

    def modes(self, trigger: ConsolidationTrigger) -> list[str]:
        """The modes of a run by name. Raises Rejected `unknown_mode_error`."""
        visible = self._spaces.visible(trigger.scope.boundary, (trigger.scope.project_id,))
        names = sorted({mode.name for mode in visible})
        if trigger.mode is None:
            return names
        if trigger.mode not in names:
            raise unknown_mode_error(trigger.mode, "mode")
        return [trigger.mode]

    def space(self, run: ConsolidationRun, mode: str) -> VectorSpace:
        """The space of a mode's vectors. Raises ModelMissing while its model is not loaded."""
        scope = {PROJECT_FIELD: run.scope[PROJECT_FIELD]}
        return self._spaces.resolve(self._spaces.mode(run.trigger.scope.boundary, mode, scope))[1]

    def turns(self, run: ConsolidationRun, mode: str) -> list[str]:
        """The ids of the turns of a mode that may be distilled, oldest first."""
        return list_distillable_turns(self._words.memory_columns(run.trigger.scope.boundary), run.scope, mode)

    def read_turns(self, run: ConsolidationRun, space: VectorSpace, ids: Sequence[str]) -> EligibleTurns:
        """Those of these turns that take part."""
        sources, waiting = [], 0
        for memory_id in ids:
            memory = self._memories.get(memory_id)
            if memory is None or memory.mode != space.mode or not is_in_run(memory, run.run, run.until):
                continue
            if memory.embedding.space == space.fingerprint.digest:
                sources.append(source_of(memory))
            waiting += is_in_flight(memory)
        return EligibleTurns(sources, waiting)

    async def vectors(self, space: VectorSpace, sources: Sequence[Source]) -> tuple[list[Source], Matrix]:
        """The turns that have a vector in the index, and their vectors as rows, shape (turns, dim)."""
        kept = await self._index.vectors(space, [source.memory_id for source in sources])
        there = [source for source in sources if source.memory_id in kept]
        rows = [kept[source.memory_id].pooled for source in there]
        return there, np.array(rows, np.float32).reshape(len(there), space.fingerprint.dim)

    def state_of(self, run: ConsolidationRun, mode: str, cluster: TurnCluster) -> SupersedeState:
        """Whether what a cluster gives is there already, made by this run, or was refused or forgotten."""
        known = self._memories.get(self.memory_id(run, mode, cluster))
        if known is None or known.item is None:
            forgotten = self._memories.is_forgotten(self.memory_id(run, mode, cluster))
            return "refused" if forgotten else "due"
        stands_for = (self._memories.get(source.memory_id) for source in cluster.sources)
        is_complete = all(one is not None and one.superseded_by == known.memory_id for one in stands_for)
        return "done" if is_complete and known.item.run == run.run else "due"

    def memory_id(self, run: ConsolidationRun, mode: str, cluster: TurnCluster) -> str:
        """The id of what is distilled from a cluster."""
        return derive_distilled_id(run.scope, mode, [source.memory_id for source in cluster.sources])

    def expected_tokens(self, cluster: TurnCluster) -> int:
        """How many tokens of a model a cluster may cost."""
        return self._distil.expected_tokens(cluster)

    async def distilled(self, run: ConsolidationRun, mode: str, cluster: TurnCluster) -> DistilledCluster:
        """What is to stand for a cluster."""
        told = await self._distil.text(cluster)
        memory = distilled_memory(
            run.scope,
            run.trigger.scope.boundary,
            mode,
            cluster.sources,
            told.text,
            confidence=told.confidence,
            run=run.run,
            at=run.at,
        )
        hashes = {source.memory_id: source.content_hash for source in cluster.sources}
        return DistilledCluster(Distilled(run=run.run, memory=memory, sources=hashes), told)

    def outcome_of(self, event: Distilled) -> SupersedeState:
        """What became of what the keeper was told."""
        memory_id = event.memory.memory_id
        if self._memories.is_forgotten(memory_id):
            return "refused"
        sources = [self._memories.get(one) for one in event.sources]
        return supersede_state(event, self._memories.get(memory_id), sources)
