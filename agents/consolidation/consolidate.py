"""Plan a consolidation: select the turns of a scope, and distil each cluster of similar ones.

Enters: a run, and the records, lexical index and vectors of its scope. Leaves: `Distilled` events for `agents.memory`.
Writes no memory. Reads only turns of the trigger's scope, one mode at a time. A run is identified by its id and the end
offset of its turns, so that a redelivered one decides the same. Raises `Unavailable` while the vector index is not
reachable; the caller retries.
"""

import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
from modestream_client.vocabulary import Confidence
from pydantic import BaseModel, ConfigDict, Field

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.commands import ConsolidationRun
from agents.ports.indexes import LexicalIndex, VectorIndex
from agents.ports.models import LanguageModel
from agents.ports.pipelines import ActivePipelines
from agents.ports.stores import Memories
from agents.rules.clustering.clustering import CLUSTER_TIGHTNESS, MIN_CLUSTER_SIZE, StopCondition
from agents.rules.consolidation.dedup import DedupEntry, dedup_entry_of, find_duplicates
from agents.rules.consolidation.distillation import (
    MAX_DISTILLED_CHARS,
    Source,
    TurnCluster,
    cluster_turns,
    decayed_stability,
    digest_sources,
    distilled_memory,
    extractive_summary,
    is_grounded,
    is_in_run,
    list_distillable_turns,
    render_sources,
    source_of,
)
from agents.rules.index.memory_columns import TURN_TYPE, MemoryKind
from agents.rules.memory.embedding_status import is_in_flight
from agents.rules.memory.understanding import SupersedeState, can_supersede, supersede_state
from agents.rules.memory.versions import derive_distilled_id
from agents.rules.modes.declaring import unknown_mode_error
from agents.rules.prompts.prompting import CHARS_PER_TOKEN, Template, clip_text, fill_prompt
from schemas.failures import Rejected, Unavailable
from schemas.internal.consolidation import ConsolidationTrigger, Distilled, ItemsMerged
from schemas.models.language import Prompt, Unanswerable
from schemas.models.vectors import Matrix
from schemas.scopes import PROJECT_FIELD
from schemas.state.memories import Memory, index_names
from schemas.state.modes import Mode, VectorSpace

SUMMARISE_STEP, SUMMARISE_ROLE = "consolidate.distil", "consolidate"
"""Names by which a deployment selects the language model profile."""

MAX_SHOWN_TURNS = 40
"""Turns in the prompt: those nearest to all of the cluster. The memory's evidence names every turn."""

MAX_SHOWN_CHARS = 600


class ClusterSummaryAnswer(BaseModel):
    """A model's summary of a cluster."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str = Field(max_length=2 * MAX_DISTILLED_CHARS)
    confidence: Confidence = 0.5


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """A cluster's text with its confidence, and the number of model tokens that it cost."""

    text: str
    confidence: float
    by_model: bool = False
    tokens: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Summarise:
    """Clusters in, texts out."""

    model: LanguageModel
    template: Template

    def expected_tokens(self, cluster: TurnCluster, mode_prompt: str | None = None) -> int:
        """Return the number of tokens that a cluster may cost; 0 if no model is asked."""
        return len(self._prompt(cluster, mode_prompt).user) // CHARS_PER_TOKEN if self._may_ask(cluster) else 0

    async def text(
        self, cluster: TurnCluster, *, may_ask: bool = True, mode_prompt: str | None = None
    ) -> ClusterSummary:
        """Return a cluster's text. A model's failure raises nothing: the extract is used, as without `may_ask`.

        `mode_prompt` is what the cluster's mode adds to the prompt.
        """
        by_rules = ClusterSummary(extractive_summary(cluster.sources), cluster.mean_cosine)
        if not may_ask or not self._may_ask(cluster):
            return by_rules
        try:
            answered = await self.model.ask(
                SUMMARISE_STEP, SUMMARISE_ROLE, self._prompt(cluster, mode_prompt), ClusterSummaryAnswer
            )
        except (Unavailable, Unanswerable):
            return by_rules
        text, cost = answered.answer.text.strip(), answered.tokens_in + answered.tokens_out
        if not is_grounded(text, cluster.sources):
            return ClusterSummary(by_rules.text, by_rules.confidence, tokens=cost)
        return ClusterSummary(text, answered.answer.confidence, by_model=True, tokens=cost)

    def _may_ask(self, cluster: TurnCluster) -> bool:
        return not cluster.is_private and self.model.available(SUMMARISE_STEP, SUMMARISE_ROLE)

    def _prompt(self, cluster: TurnCluster, mode_prompt: str | None) -> Prompt:
        said = render_sources(cluster.sources[:MAX_SHOWN_TURNS], lambda text: clip_text(text, MAX_SHOWN_CHARS))
        parts = {"said": said, "mode": json.dumps(mode_prompt, ensure_ascii=False)}
        return fill_prompt(self.template.text, self.template.version, parts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Deduplicate:
    """Items in, `ItemsMerged` events out.

    Items with this share of words in common are one; `has_decay`: the stability of old ones is lowered.
    """

    memories: Memories
    words: LexicalIndex
    _: KW_ONLY
    similarity: float = 1.0
    has_decay: bool = True

    def items(self, run: ConsolidationRun, mode: str) -> list[str]:
        """Return the ids of current items and distilled memories of a scope and mode."""
        item_ids: list[str] = []
        for name in index_names(run.trigger.scope.boundary):
            memories = self.words.memory_columns(name)
            has_turns = name == run.trigger.scope.boundary

            def is_item(kind: MemoryKind, *, has_turns: bool = has_turns) -> bool:
                is_turn = has_turns and kind.type == TURN_TYPE
                return dict(kind.scope) == run.scope and kind.mode == mode and not is_turn

            items = memories.of_kind(is_item).astype(np.bool_)
            current = memories.columns.live & items & ~memories.columns.superseded
            item_ids += [memories.id_of[number] for number in np.flatnonzero(current).tolist()]
        return item_ids

    def read_items(self, run: ConsolidationRun, ids: Sequence[str]) -> tuple[list[DedupEntry], list[ItemsMerged]]:
        """Return the entries of these items to compare, and the events of decayed ones."""
        current = [memory for memory_id in ids if (memory := self.memories.get(memory_id)) is not None]
        items = [memory for memory in current if memory.item is not None and memory.superseded_by is None]
        entries = [dedup_entry_of(item) for item in items if item.origin == "extracted"]
        decayed = [(item, decayed_stability(item, run.at)) for item in items if self.has_decay]
        return entries, [
            ItemsMerged(run=run.run, memory_id=item.memory_id, content_hash=item.content_hash, stability=stability)
            for item, stability in decayed
            if stability is not None
        ]

    def merges(self, run: ConsolidationRun, entries: Sequence[DedupEntry]) -> list[ItemsMerged]:
        """Return the events that merge items into older ones of the same content."""
        return [
            ItemsMerged(run=run.run, memory_id=item.memory_id, content_hash=item.content_hash, into=older.memory_id)
            for item, older in find_duplicates(entries, self.similarity)
        ]

    def is_settled(self, event: ItemsMerged) -> bool:
        """True if an event has been applied, or will not be."""
        item = self.memories.get(event.memory_id)
        if item is None or item.item is None or item.content_hash != event.content_hash or item.superseded_by:
            return True
        if event.into is None:
            return item.item.stability == event.stability
        older = self.memories.get(event.into)
        return older is None or not can_supersede(item, older)

    def item(self, memory_id: str) -> Memory | None:
        return self.memories.get(memory_id)


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


@dataclass(frozen=True, slots=True)
class ClusterLimits:
    """The turns from which a summary is made, and the cosine from which two are neighbours; None as the space says."""

    min_turns: int = MIN_CLUSTER_SIZE
    min_similarity: float | None = None

    def clusters(self, sources: Sequence[Source], vectors: Matrix, stop: StopCondition) -> list[TurnCluster]:
        """Return the clusters of turns, as `cluster_turns`."""
        tightness = CLUSTER_TIGHTNESS
        if self.min_similarity is not None:
            # `near` 1: the cosine alone decides, in every space.
            tightness = replace(tightness, near=1.0, cosine=self.min_similarity)
        return cluster_turns(sources, vectors, stop, self.min_turns, tightness)

    def digest(self, sources: Sequence[Source], space: str) -> str:
        """Return a digest of these turns and limits: equal digests mean that they were clustered before."""
        return digest_sources(sources, space if self == ClusterLimits() else f"{space} {self}")


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
        pipelines: ActivePipelines,
        bounds: RunLimits = NO_LIMITS,
        limits: ClusterLimits | None = None,
    ) -> None:
        self.pipelines = pipelines
        self.limits = limits or ClusterLimits()
        self._memories = memories
        self._words = words
        self._index = index
        self._spaces = spaces
        self._distil = distil
        self.bounds = bounds
        self.evolve = evolve

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
        """Return the turns that take part in the run."""
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
        distilled = self._memories.get(self.memory_id(run, mode, cluster))
        if distilled is None or distilled.item is None:
            forgotten = self._memories.is_forgotten(self.memory_id(run, mode, cluster))
            return "refused" if forgotten else due
        sources = (self._memories.get(source.memory_id) for source in cluster.sources)
        is_complete = all(source is not None and source.superseded_by == distilled.memory_id for source in sources)
        return "done" if is_complete and distilled.item.run == run.run else due

    def memory_id(self, run: ConsolidationRun, mode: str, cluster: TurnCluster) -> str:
        return derive_distilled_id(run.scope, mode, [source.memory_id for source in cluster.sources])

    def expected_tokens(self, run: ConsolidationRun, mode: str, cluster: TurnCluster) -> int:
        """Return the number of model tokens that a cluster may cost."""
        return self._distil.expected_tokens(cluster, _distil_prompt(self._declared(run, mode)))

    async def distilled(self, run: ConsolidationRun, mode: str, cluster: TurnCluster) -> DistilledCluster:
        declared = self._declared(run, mode)
        # Turns may have become private, or forgotten, since the run was planned.
        turns = (self._memories.get(source.memory_id) for source in cluster.sources)
        may_ask = declared is not None and not (
            declared.private or any(turn is None or turn.visibility.private for turn in turns)
        )
        summary = await self._distil.text(cluster, may_ask=may_ask, mode_prompt=_distil_prompt(declared))
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
        if declared is not None:
            memory = memory.model_copy(update={"decay": declared.decay_of(memory.type)})
        hashes = {source.memory_id: source.content_hash for source in cluster.sources}
        return DistilledCluster(Distilled(run=run.run, memory=memory, sources=hashes), summary)

    def _declared(self, run: ConsolidationRun, mode: str) -> Mode | None:
        """Return a mode as it is declared now; None if it was deleted meanwhile."""
        try:
            return self._spaces.mode(run.trigger.scope.boundary, mode, run.scope)
        except Rejected:
            return None

    def outcome_of(self, event: Distilled) -> SupersedeState:
        memory_id = event.memory.memory_id
        if self._memories.is_forgotten(memory_id):
            return "refused"
        sources = [self._memories.get(memory_id) for memory_id in event.sources]
        return supersede_state(event, self._memories.get(memory_id), sources)


def _distil_prompt(mode: Mode | None) -> str | None:
    return None if mode is None else mode.prompt_overrides.get("distil")
