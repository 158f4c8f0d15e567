"""Select turns to consolidate, and distil each cluster of them into one memory that decays with age. Pure.

Clusters hold turns of one speaker that share more than courtesies: the same words of two speakers are two facts.
Private turns have separate clusters, which no language model reads. Excluded are turns that must stay verbatim
(rules, corrections and errors, which a context may have to keep, system turns and turns with resources) and courtesies.

The same turns always give the same id. An extractive text is the medoid, then the sentences of other turns that add
most: greedy coverage of content stems within a budget, gain over length (Lin and Bilmes, "A Class of Submodular
Functions for Document Summarization", 2011). A sentence from another day than the medoid is dated.

`stability` is the probability that an item still holds. Its initial value follows from the record: from the turn that
said it last, or from the number of turns. So decay is never applied twice, and a repetition resets it.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from typing import NamedTuple

import numpy as np
from modestream_client.hits import Evidence
from modestream_client.vocabulary import Decay, ModeSource

from agents.rules.clustering.clustering import (
    CLUSTER_TIGHTNESS,
    MIN_CLUSTER_SIZE,
    NeighbourThresholds,
    StopCondition,
    find_clusters,
    never_stop,
    topic_stems,
)
from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.columns import HALF_LIFE_DAYS
from agents.rules.index.memory_columns import TURN_TYPE, MemoryColumns
from agents.rules.memory.versions import derive_distilled_id
from agents.rules.text.passages import embedding_text, split_sentences
from agents.rules.text.tokenizer import extract_entities, tokenize
from schemas.internal.consolidation import RunHistory
from schemas.models.vectors import Matrix
from schemas.moments import iso
from schemas.state.memories import Item, Memory, TextVersion, TurnUnderstanding, hash_texts
from schemas.state.modes import EVERYWHERE, Visibility

STABILITY_STEP = 0.05
"""Rounding step of stability: finer steps carry no information, and each change is a write."""

MIN_STABILITY_SHARE = 0.2
"""Share of the initial stability that never decays: an item that was never revoked may hold forever."""


def rule_of_succession(times: int) -> float:
    """Return the probability that a statement valid `times` times is valid once more (Laplace, 1774)."""
    return (times + 1) / (times + 2)


def decayed_stability(memory: Memory, at: datetime) -> float | None:
    """Return an item's stability at a time; None if it differs by less than half a step, or if it is not an item."""
    item = memory.item
    if item is None:
        return None
    initial = item.supports[-1].stability if item.supports else rule_of_succession(len(memory.evidence))
    # Whole days, and a rounded result: a second run on a day changes nothing.
    days = max(0, (at - memory.occurred_at).days)
    remaining = MIN_STABILITY_SHARE + (1 - MIN_STABILITY_SHARE) * 0.5 ** (days / HALF_LIFE_DAYS[memory.decay])
    now = initial if days == 0 else round(initial * remaining / STABILITY_STEP) * STABILITY_STEP
    return None if abs(now - item.stability) < STABILITY_STEP / 2 else round(now, 3)


def apply_decay(memory: Memory, at: datetime) -> Memory:
    """Set an item's stability to its value at a time."""
    stability = decayed_stability(memory, at)
    if stability is None or memory.item is None:
        return memory
    return memory.model_copy(update={"item": memory.item.model_copy(update={"stability": stability})})


class Source(NamedTuple):
    """The fields of a turn that distilling needs: a user may have a hundred thousand turns in memory."""

    memory_id: str
    turn_id: str
    content_hash: str
    text: str
    voice: str
    occurred_at: datetime
    latest_at: datetime
    offset: int
    mode_source: ModeSource
    decay: Decay
    importance: float | None
    is_superseded: bool = False
    visibility: Visibility = EVERYWHERE
    own_visibility: Visibility = EVERYWHERE


def source_of(memory: Memory) -> Source:
    """Return the fields of a turn's memory."""
    return Source(
        memory_id=memory.memory_id,
        turn_id=memory.turn_id or "",
        content_hash=memory.content_hash,
        text=memory.text,
        voice=memory.speaker or (memory.role or ""),
        occurred_at=memory.occurred_at,
        latest_at=memory.latest_at,
        offset=memory.source,
        mode_source=memory.mode_source,
        decay=memory.decay,
        importance=memory.importance,
        is_superseded=memory.superseded_by is not None,
        visibility=memory.visibility,
        own_visibility=memory.own_visibility,
    )


def distilled_memory(
    scope: Mapping[str, str],
    boundary: str,
    mode: str,
    sources: Sequence[Source],
    text: str,
    *,
    confidence: float,
    run: str,
    at: datetime,
) -> Memory:
    """Return the distilled memory of these turns of one visibility, not embedded yet. `confidence` lies in 0..1.

    Its own visibility is the strictest of theirs: it has their texts.
    """
    ordered = sorted(sources, key=lambda source: (source.occurred_at, source.offset))
    first, last = ordered[0], ordered[-1]
    memory = Memory(
        memory_id=derive_distilled_id(scope, mode, [source.memory_id for source in sources]),
        turn_id=None,
        conversation_id=None,
        scope=dict(scope),
        boundary=boundary,
        type="semantic",
        mode=mode,
        mode_source=last.mode_source,
        role=None,
        text=text,
        occurred_at=last.occurred_at,
        source=max(source.offset for source in sources),
        latest=max(source.offset for source in sources),
        latest_at=max(source.latest_at for source in sources),
        importance=max((source.importance for source in sources if source.importance is not None), default=None),
        entities=extract_entities(text),
        evidence=tuple(
            Evidence(turn_id=turn.turn_id, start=0, end=len(turn.text), memory_id=turn.memory_id) for turn in ordered
        ),
        decay=last.decay,
        versions=(TextVersion(text_hash=hash_texts([text]), first_seen=at),),
        content_hash="",
        reading=TurnUnderstanding(text_hash=hash_texts([text])),
        origin="distilled",
        visibility=last.visibility,
        own_visibility=reduce(Visibility.limited_by, (source.own_visibility for source in sources)),
        item=Item(
            confidence=round(confidence, 3),
            stability=round(rule_of_succession(len(sources)), 3),
            valid_from=first.occurred_at,
            run=run,
        ),
    )
    return apply_decay(memory.model_copy(update={"content_hash": hash_texts([embedding_text(memory)])}), at)


MAX_DISTILLED_CHARS = 900
"""Maximum characters of a summary: about 200 tokens, within the input limit of every embedder."""

MAX_MEDOID_CHARS = 600
"""Maximum characters used of the medoid; a longer turn is hardly a repeated one."""

MIN_NEW_STEMS = 2
"""Minimum new content stems of a sentence: a single one is a number or a synonym."""

MAX_ADDED_SENTENCES = 6

MIN_GROUNDED_SHARE = 0.5
"""Share of the content stems of a model's text that must occur in the turns; an invented text shares few."""

USER_VOICE = "user"
"""The voice of the memories' owner, which is not named in a summary."""


def extractive_summary(sources: Sequence[Source]) -> str:
    """Summarise the turns in their own words; `sources` come medoid first."""
    medoid = sources[0]
    is_short = len(medoid.text) <= MAX_MEDOID_CHARS
    lines = [medoid.text if is_short else f"{medoid.text[:MAX_MEDOID_CHARS].rstrip()}\u2026"]
    # The sentences of other turns that add most, as long as there is room.
    budget, covered = MAX_DISTILLED_CHARS - len(lines[0]), set(topic_stems(medoid.text[:MAX_MEDOID_CHARS]))
    candidates = [
        (source, part.strip(), topic_stems(part)) for source in sources[1:] for part in split_sentences(source.text)
    ]
    for _ in range(MAX_ADDED_SENTENCES):
        fitting = [
            candidate
            for candidate in candidates
            if len(candidate[2] - covered) >= MIN_NEW_STEMS and len(candidate[1]) <= budget
        ]
        if not fitting:
            break
        # Ties go to the first: `candidates` are in order of similarity to the medoid.
        source, sentence, stems = max(
            fitting, key=lambda candidate: len(candidate[2] - covered) / max(len(candidate[1]), 1) ** 0.5
        )
        covered |= stems
        budget -= len(sentence)
        is_of_another_day = source.occurred_at.date() != medoid.occurred_at.date()
        lines.append(f"{source.occurred_at.date()}: {sentence}" if is_of_another_day else sentence)
    speaker = "" if medoid.voice == USER_VOICE else f"{medoid.voice}: "
    # The number of turns and their dates, in symbols that need no translation.
    days = sorted({source.occurred_at.date() for source in sources})
    when = str(days[0]) if len(days) == 1 else f"{days[0]} \u2013 {days[-1]}"
    return f"{speaker}{' '.join(lines)} ({len(sources)}\u00d7, {when})"


def render_sources(sources: Sequence[Source], clip: Callable[[str], str]) -> str:
    """Render the turns for a prompt: a JSON array with one turn a line."""
    turns = ({"who": source.voice, "when": iso(source.occurred_at), "text": clip(source.text)} for source in sources)
    return "[" + ",\n".join(json.dumps(turn, ensure_ascii=False) for turn in turns) + "]"


def is_grounded(text: str, sources: Sequence[Source]) -> bool:
    """True if a model's text has content, most of which occurs in the turns."""
    stems = topic_stems(text)
    source_stems = frozenset[str]().union(*(topic_stems(f"{source.voice} {source.text}") for source in sources))
    return bool(stems) and len(stems & source_stems) >= MIN_GROUNDED_SHARE * len(stems)


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
    return [memories.id_of[number] for number in columns.by_time(numbers).tolist()]


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
    digests = (
        f"{source.memory_id} {source.content_hash}{' private' if source.visibility.private else ''}"
        for source in sources
    )
    return hash_texts([space, *sorted(digests)])


def cluster_turns(
    sources: Sequence[Source],
    vectors: Matrix,
    should_stop: StopCondition = never_stop,
    min_turns: int = MIN_CLUSTER_SIZE,
    tightness: NeighbourThresholds = CLUSTER_TIGHTNESS,
) -> list[TurnCluster]:
    """Cluster turns by speaker, private ones separately; `vectors` has a row for each, shape (turns, dim).

    After `should_stop` only the clusters found so far are returned; the next run continues with the other turns.
    """
    names = {word for voice in {source.voice for source in sources} for word in tokenize(voice)}
    numbers_by_voice: defaultdict[tuple[str, bool], list[int]] = defaultdict(list)
    for number, source in enumerate(sources):
        numbers_by_voice[source.voice, source.visibility.private].append(number)
    clusters = []
    for numbers in numbers_by_voice.values():
        topics = [topic_stems(sources[number].text, names) for number in numbers]
        for cluster in find_clusters(
            vectors[numbers], topics, min_size=min_turns, should_stop=should_stop, tightness=tightness
        ):
            members = [numbers[row] for row in cluster]
            of_members = vectors[members]
            lengths = np.linalg.norm(of_members, axis=1)
            cosines = of_members[1:] @ of_members[0] / np.maximum(lengths[1:] * lengths[0], 1e-9)
            clusters.append(TurnCluster([sources[number] for number in members], float(np.clip(cosines.mean(), 0, 1))))
        if should_stop():
            break
    return clusters
