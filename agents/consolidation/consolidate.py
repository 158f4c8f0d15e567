"""Plan a consolidation: select the turns of a scope, and distil each cluster of similar ones.

Enters: a run, and the records, lexical index and vectors of its scope. Leaves: `Distilled` events for `agents.memory`.
Writes no memory. Reads only turns of the trigger's scope, one mode at a time. A run is identified by its id and the end
offset of its turns, so that a redelivered one decides the same. Raises `Unavailable` while the vector index is not
reachable; the caller retries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.consolidation.deduplicate import Deduplicate
from agents.consolidation.summarise import ClusterSummary, Summarise
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.consolidation_run import ConsolidationRun
from agents.ports.lexical_index import LexicalIndex
from agents.ports.pipelines import ActivePipelines
from agents.ports.stores import Memories
from agents.ports.vector_index import VectorIndex
from agents.rules.consolidation.distillation import (
    Source,
    TurnCluster,
    distilled_memory,
    is_in_run,
    list_distillable_turns,
    source_of,
)
from agents.rules.memory.embedding_status import is_in_flight
from agents.rules.memory.understanding import SupersedeState, supersede_state
from agents.rules.memory.versions import derive_distilled_id
from agents.rules.modes.declaring import unknown_mode_error
from agents.rules.pipelines.built_in import BUILT_IN
from schemas.failures import Rejected
from schemas.internal.consolidation import ConsolidationTrigger, Distilled
from schemas.models.vectors import Matrix
from schemas.scopes import PROJECT_FIELD
from schemas.state.modes import VectorSpace


@dataclass(frozen=True, slots=True)
class EligibleTurns:
    """Turns of a run, and the number of turns that still wait for a vector."""

    sources: list[Source]
    waiting: int


@dataclass(frozen=True, slots=True)
class DistilledCluster:
    """The event of a distilled cluster, and its summary with the cost."""

    event: Distilled
    summary: ClusterSummary


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The limits of one run: seconds, and tokens of language models."""

    seconds: float
    tokens: int


REFRESH_ITEMS = "evolve.refresh_items"
"""The step that has turns understood again, before they are read for the others."""

SELECTING_STEPS = ("evolve.select", REFRESH_ITEMS)
"""The built-in steps after which own steps may narrow the turns of a run."""

NO_LIMITS = RunLimits(float("inf"), 1_000_000_000)


class Consolidate:
    """Runs in, distilled clusters out."""

    def __init__(
        self,
        memories: Memories,
        words: LexicalIndex,
        index: VectorIndex,
        spaces: VectorSpaces,
        distil: Summarise,
        evolve: Deduplicate,
        bounds: RunLimits = NO_LIMITS,
        pipelines: ActivePipelines | None = None,
    ) -> None:
        """`pipelines` say which steps run, and run the deployment's own; None: all of the release."""
        self._pipelines = pipelines
        self._memories = memories
        self._words = words
        self._index = index
        self._spaces = spaces
        self._distil = distil
        self.bounds = bounds
        self.evolve = evolve

    def has_step(self, step_id: str) -> bool:
        """True if a run has this step."""
        return not BUILT_IN[step_id].is_off if self._pipelines is None else self._pipelines.is_on(step_id)

    async def selected(self, run: ConsolidationRun, sources: Sequence[Source]) -> list[Source]:
        """Return those of these turns that the deployment's own steps leave. Raises Rejected if one fails."""
        selected = [*sources]
        for place in SELECTING_STEPS:
            if self._pipelines is not None and self._pipelines.has_own(place):
                own = await self._pipelines.run_own(place, {"scope": run.scope, "turns": selected})
                selected = list(own.value)
        return selected

    def modes(self, trigger: ConsolidationTrigger) -> list[str]:
        """Return the names of a run's modes. Raises Rejected `unknown_mode`."""
        visible = self._spaces.visible(trigger.scope.boundary, (trigger.scope.project_id,))
        names = sorted({mode.name for mode in visible})
        if trigger.mode is None:
            return names
        if trigger.mode not in names:
            raise unknown_mode_error(trigger.mode, "mode")
        return [trigger.mode]

    def space(self, run: ConsolidationRun, mode: str) -> VectorSpace:
        """Return a mode's vector space. Raises ModelMissing while its model is not loaded."""
        scope = {PROJECT_FIELD: run.scope[PROJECT_FIELD]}
        return self._spaces.resolve(self._spaces.mode(run.trigger.scope.boundary, mode, scope))[1]

    def turns(self, run: ConsolidationRun, mode: str) -> list[str]:
        """Return the ids of a mode's turns that may be distilled, oldest first."""
        return list_distillable_turns(self._words.memory_columns(run.trigger.scope.boundary), run.scope, mode)

    def read_turns(self, run: ConsolidationRun, space: VectorSpace, ids: Sequence[str]) -> EligibleTurns:
        """Return those of these turns that take part in the run."""
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
        """Return the turns with a vector in the index, and their vectors as rows, shape (turns, dim)."""
        vectors = await self._index.pooled(space, [source.memory_id for source in sources])
        embedded = [source for source in sources if source.memory_id in vectors]
        rows = [vectors[source.memory_id] for source in embedded]
        return embedded, np.array(rows, np.float32).reshape(len(embedded), space.fingerprint.dim)

    def state_of(self, run: ConsolidationRun, mode: str, cluster: TurnCluster) -> SupersedeState:
        """Return whether a cluster's distilled memory is due, done by this run, or refused.

        Refused are one that was forgotten, and one that a run had not made when it ended.
        """
        due: SupersedeState = "refused" if run.has_ended else "due"
        known = self._memories.get(self.memory_id(run, mode, cluster))
        if known is None or known.item is None:
            forgotten = self._memories.is_forgotten(self.memory_id(run, mode, cluster))
            return "refused" if forgotten else due
        sources = (self._memories.get(source.memory_id) for source in cluster.sources)
        is_complete = all(one is not None and one.superseded_by == known.memory_id for one in sources)
        return "done" if is_complete and known.item.run == run.run else due

    def memory_id(self, run: ConsolidationRun, mode: str, cluster: TurnCluster) -> str:
        """Return the id of a cluster's distilled memory."""
        return derive_distilled_id(run.scope, mode, [source.memory_id for source in cluster.sources])

    def expected_tokens(self, cluster: TurnCluster) -> int:
        """Return the number of model tokens that a cluster may cost."""
        return self._distil.expected_tokens(cluster)

    async def distilled(self, run: ConsolidationRun, mode: str, cluster: TurnCluster) -> DistilledCluster:
        """Distil a cluster."""
        summary = await self._distil.text(cluster, may_ask=not self._is_private_now(run, mode, cluster))
        memory = distilled_memory(
            run.scope,
            run.trigger.scope.boundary,
            mode,
            cluster.sources,
            summary.text,
            confidence=summary.confidence,
            run=run.run,
            at=run.at,
        )
        hashes = {source.memory_id: source.content_hash for source in cluster.sources}
        return DistilledCluster(Distilled(run=run.run, memory=memory, sources=hashes), summary)

    def _is_private_now(self, run: ConsolidationRun, mode: str, cluster: TurnCluster) -> bool:
        """True if a language model may not read a turn any more since it was planned with."""
        try:
            declared = self._spaces.mode(run.trigger.scope.boundary, mode, run.scope)
        except Rejected:
            return True  # The mode was deleted meanwhile.
        turns = (self._memories.get(source.memory_id) for source in cluster.sources)
        return declared.private or any(turn is None or turn.visibility.private for turn in turns)

    def outcome_of(self, event: Distilled) -> SupersedeState:
        """Return the state of a published event."""
        memory_id = event.memory.memory_id
        if self._memories.is_forgotten(memory_id):
            return "refused"
        sources = [self._memories.get(one) for one in event.sources]
        return supersede_state(event, self._memories.get(memory_id), sources)
