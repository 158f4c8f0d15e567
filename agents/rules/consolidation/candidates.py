"""Select what to consolidate: scopes that are due, and clusters of turns to distil into one memory. Pure.

Clusters hold turns of one speaker that share more than courtesies: the same words of two speakers are two facts.
Private turns have clusters of their own, which no language model reads.
Excluded are turns that must stay verbatim (rules, corrections and errors, which a context may have to keep, system
turns and turns with resources) and courtesies, which have no content.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from agents.rules.clustering.clustering import StopCondition, find_clusters, never_stop
from agents.rules.clustering.knn import topic_stems
from agents.rules.consolidation.distillation import Source
from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.memory_columns import TURN_TYPE, MemoryColumns
from agents.rules.memory.identity import hash_texts
from agents.rules.text.tokenizer import tokenize
from schemas.internal.consolidation import RunHistory
from schemas.models.vectors import Matrix
from schemas.state.memories import Memory

MIN_SCOPE_TURNS = 3
"""Turns of a scope below which nothing can be distilled."""


@dataclass(slots=True)
class ScopeTurns:
    """The number of current turns of one scope, and the offset of the newest."""

    scope: Mapping[str, str] = field(default_factory=dict)
    boundary: str = ""
    count: int = 0
    newest: int = -1

    def add(self, memory: Memory) -> None:
        """Count a turn of the scope."""
        self.scope, self.boundary = memory.scope, memory.boundary
        self.count += 1
        self.newest = max(self.newest, memory.source)


def is_consolidation_due(turns: ScopeTurns, runs: RunHistory, now: datetime, every: timedelta) -> bool:
    """True if the scope has new turns since its last run, and that run is at least `every` ago."""
    if turns.count < MIN_SCOPE_TURNS:
        return False
    last = runs.runs[-1] if runs.runs else None
    return last is None or (turns.newest >= last.until and now - last.at >= every)


EXCLUDED_LABELS = SentenceLabel.COURTESY | SentenceLabel.SYSTEM | SentenceLabel.SAFETY | SentenceLabel.CONSTRAINT
EXCLUDED_LABELS |= SentenceLabel.CORRECTION | SentenceLabel.INSTRUCTION | SentenceLabel.ERROR
"""Labels of turns that are not distilled: `agents.rules.context.sticky` needs them, or they have no content."""


class TurnCluster(NamedTuple):
    """Turns that say nearly the same, the medoid first, and their mean cosine with it, 0..1."""

    sources: list[Source]
    mean_cosine: float

    @property
    def is_private(self) -> bool:
        """True if no language model may read it."""
        return any(source.visibility.private for source in self.sources)


def list_distillable_turns(memories: MemoryColumns, scope: Mapping[str, str], mode: str) -> list[str]:
    """Return the ids of a scope's and mode's distillable turns, oldest first, superseded ones included."""
    matching = memories.of_kind(
        lambda kind: dict(kind.scope) == scope and kind.mode == mode and kind.type == TURN_TYPE
    ).astype(np.bool_)
    columns = memories.columns
    numbers = np.flatnonzero(columns.live & matching & ((columns.labels & EXCLUDED_LABELS.value) == 0))
    order = np.lexsort((columns.source[numbers], columns.occurred_ms[numbers]))
    return [memories.id_of[number] for number in numbers[order].tolist()]


def is_in_run(memory: Memory, run: str, until: int) -> bool:
    """True if the turn was accepted before the run began and is not superseded by another run."""
    return (
        memory.origin == "said"
        and memory.source < until
        and (memory.superseded_by is None or memory.superseded_in == run)
        and not memory.resources
    )


def digest_sources(sources: Sequence[Source], space: str) -> str:
    """Hash the turns, their contents and visibility, and the digest of the vector space, in any order of the turns."""
    return hash_texts([space, *sorted(map(_digest_of, sources))])


def _digest_of(source: Source) -> str:
    return f"{source.memory_id} {source.content_hash}{' private' if source.visibility.private else ''}"


def cluster_turns(
    sources: Sequence[Source], vectors: Matrix, should_stop: StopCondition = never_stop
) -> list[TurnCluster]:
    """Cluster turns by speaker, private ones apart; `vectors` has a row for each, shape (turns, dim).

    After `should_stop` only the clusters found so far are returned; the next run continues with the other turns.
    """
    names = {word for voice in {source.voice for source in sources} for word in tokenize(voice)}
    numbers_by_voice: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
    for number, source in enumerate(sources):
        numbers_by_voice[source.voice, source.visibility.private].append(number)
    found = []
    for numbers in numbers_by_voice.values():
        topics = [topic_stems(sources[number].text, names) for number in numbers]
        for cluster in find_clusters(vectors[numbers], topics, should_stop=should_stop):
            members = [numbers[row] for row in cluster]
            found.append(TurnCluster([sources[number] for number in members], _mean_cosine(vectors[members])))
        if should_stop():
            break
    return found


def _mean_cosine(vectors: Matrix) -> float:
    lengths = np.linalg.norm(vectors, axis=1)
    cosines = vectors[1:] @ vectors[0] / np.maximum(lengths[1:] * lengths[0], 1e-9)
    return float(np.clip(cosines.mean(), 0, 1))
