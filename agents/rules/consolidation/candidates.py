"""Which turns of a mode are distilled together. Pure.

Enters: the roster of a boundary, then the turns with their vectors. Leaves: clusters of turns of one voice that share
more than kind words: what two people say of themselves is not the same, however alike it sounds. Not gathered is what
must be found as it was said: courtesies, which say nothing; rules, corrections and errors, which a context may have to
keep; what a system said, and turns with resources.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from agents.rules.clustering.clustering import StopCondition, find_clusters, never_stop
from agents.rules.clustering.knn import topic_stems
from agents.rules.consolidation.distillation import Source
from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.traits import TURN_TYPE
from agents.rules.memory.identity import hash_texts
from agents.rules.text.tokenizer import tokenize
from schemas.memories import Memory
from schemas.vectors import Matrix

EXCLUDED_LABELS = (
    SentenceLabel.COURTESY
    | SentenceLabel.SYSTEM
    | SentenceLabel.SAFETY
    | SentenceLabel.CONSTRAINT
    | SentenceLabel.CORRECTION
    | SentenceLabel.INSTRUCTION
    | SentenceLabel.ERROR
)
"""Marks of what is not distilled: `agents.rules.context.sticky` looks for these, or there is nothing to distil."""


class TurnCluster(NamedTuple):
    """Turns that say nearly the same, the medoid first, and how near they are to it on average, 0..1."""

    sources: list[Source]
    mean_cosine: float


def list_distillable_turns(roster: MemoryColumns, scope: Mapping[str, str], mode: str) -> list[str]:
    """The ids of the turns of a scope and mode that may be distilled, oldest first; superseded ones among them."""
    there = roster.of_kind(
        lambda kind: dict(kind.scope) == scope and kind.mode == mode and kind.type == TURN_TYPE
    ).astype(np.bool_)
    columns = roster.columns
    numbers = np.flatnonzero(columns.live & there & ((columns.labels & EXCLUDED_LABELS.value) == 0))
    order = np.lexsort((columns.source[numbers], columns.occurred_ms[numbers]))
    return [roster.id_of[number] for number in numbers[order].tolist()]


def is_in_run(memory: Memory, run: str, until: int) -> bool:
    """Whether a turn is one of a run's: accepted before it began, and superseded by nothing but this very run."""
    return (
        memory.origin == "said"
        and memory.source < until
        and (memory.superseded_by is None or memory.superseded_in == run)
        and not memory.resources
    )


def digest_sources(sources: Sequence[Source], space: str) -> str:
    """The digest of turns and their texts, by vectors of the space with this digest."""
    return hash_texts([space, *sorted(f"{source.memory_id} {source.content_hash}" for source in sources)])


def cluster_turns(
    sources: Sequence[Source], vectors: Matrix, should_stop: StopCondition = never_stop
) -> list[TurnCluster]:
    """The clusters among these turns, whose vectors are rows of `vectors`, shape (turns, dim).

    Once it is `should_stop`, some of them: they are written, and the next run looks among fewer.
    """
    names = {word for voice in {source.voice for source in sources} for word in tokenize(voice)}
    voices: defaultdict[str, list[int]] = defaultdict(list)
    for place, source in enumerate(sources):
        voices[source.voice].append(place)
    found = []
    for places in voices.values():
        topics = [topic_stems(sources[place].text, names) for place in places]
        for cluster in find_clusters(vectors[places], topics, should_stop=should_stop):
            members = [places[number] for number in cluster]
            found.append(TurnCluster([sources[place] for place in members], _nearness(vectors[members])))
        if should_stop():
            break
    return found


def _nearness(vectors: Matrix) -> float:
    """The mean cosine of the first with the others."""
    lengths = np.linalg.norm(vectors, axis=1)
    cosines = vectors[1:] @ vectors[0] / np.maximum(lengths[1:] * lengths[0], 1e-9)
    return float(np.clip(cosines.mean(), 0, 1))
