"""Suggest modes: clusters of conversation segments that fit no declared mode, with a name for each. Pure.

A segment is a run of consecutive turns of one conversation. A register lasts longer than a turn: a segment's mean
vector shows it where single turns are too short. Deterministic.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np
from modestream_client.vocabulary import ModeSource

from agents.rules.clustering.clustering import background_cosine, cluster_by_average_linkage
from agents.rules.index.columns import MISSING
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.text.tokenizer import content_terms
from schemas.models.vectors import Matrix, Vector
from schemas.scopes import PROJECT_FIELD
from schemas.state.memories import Memory, VectorLocation

MAX_SEGMENT_TURNS = 8
"""Turns of a segment. Eight long conversations mixed into one: segments of eight turns separate by topic; of segments
of four, half end up in a single cluster."""

MAX_PAUSE_MS = 6 * 3600 * 1000
"""Milliseconds. A longer pause starts a new segment."""

EXPLICIT_SOURCES: frozenset[ModeSource] = frozenset({"caller", "model"})
"""Sources of a mode that was chosen for the turn itself."""

Segment = Sequence[Memory]


def split_segments(memories: MemoryColumns, limit: int, projects: Collection[str] | None = None) -> list[list[str]]:
    """Return the ids of a boundary's turns in these projects by segment, without superseded turns; None: in all.

    Of more than `limit` segments, an evenly spaced selection is returned, the first and the last included.
    """
    columns = memories.columns
    admitted = columns.live & ~columns.superseded & (columns.conversations != MISSING)
    if projects is not None:
        admitted &= memories.of_kind(lambda kind: dict(kind.scope)[PROJECT_FIELD] in projects).astype(np.bool_)
    turns = np.flatnonzero(admitted)
    turns = turns[np.lexsort((columns.source[turns], columns.occurred_ms[turns], columns.conversations[turns]))]
    begins = np.ones(len(turns), np.bool_)
    begins[1:] = np.diff(columns.conversations[turns]) != 0
    begins[1:] |= np.diff(columns.occurred_ms[turns]) > MAX_PAUSE_MS
    size = MAX_SEGMENT_TURNS
    runs = np.split(turns, np.flatnonzero(begins)[1:])
    segments = [run[start : start + size] for run in runs for start in range(0, len(run), size)]
    selected = sorted(set(np.linspace(0, len(segments) - 1, min(limit, len(segments))).astype(int).tolist()))
    return [[memories.id_of[number] for number in segments[position].tolist()] for position in selected]


def default_segments_by_location(segments: Iterable[Segment]) -> Mapping[VectorLocation, list[Segment]]:
    """Return the turns with a default mode, by segment, under the segment's most common vector location."""
    by_location: defaultdict[VectorLocation, list[Segment]] = defaultdict(list)
    for segment in segments:
        ready = [memory for memory in segment if memory.mode_source not in EXPLICIT_SOURCES and memory.embedding.space]
        locations = Counter(memory.embedding.place for memory in ready if memory.embedding.place is not None)
        for location, _ in locations.most_common(1):
            by_location[location].append([memory for memory in ready if memory.embedding.place == location])
    return by_location


def chosen_segments_by_mode(segments: Iterable[Segment]) -> Mapping[str, list[Segment]]:
    """Return the turns with an explicitly chosen mode, by segment, under the mode's name."""
    by_mode: defaultdict[str, list[Segment]] = defaultdict(list)
    for segment in segments:
        chosen = [memory for memory in segment if memory.mode_source in EXPLICIT_SOURCES]
        for mode in dict.fromkeys(memory.mode for memory in chosen):
            by_mode[mode].append([memory for memory in chosen if memory.mode == mode])
    return by_mode


GROUP_COHESION = 0.25
"""A group's minimum mean cosine, as a fraction of the way from the background cosine to 1. Of eight conversations in
eight registers mixed into one (2,043 turns, MiniLM), 0.25 finds code, German, founding, research and a novel, each
nearly pure, and everyday life as one group; 0.15 merges two registers, 0.35 splits each into topics."""

MIN_GROUP_TURNS = 16
"""Turns: two segments. Fewer are not worth declaring a mode."""

MIN_GROUP_SHARE = 0.02
"""Minimum share of all given turns: among years of memories a single evening is not a register."""

MAX_GROUP_SHARE = 0.5
"""Maximum share of all given turns: a larger group is the default mode's purpose."""

MAX_GROUP_TERMS = 6

MAX_MODE_NAME_CHARS = 64
"""Characters of a mode's name (docs/contract.md)."""

STEM_CHARS = 5
"""Words with the same first letters count as one: "chapter" and "chapters"."""

_NAME = re.compile(r"[a-z][a-z0-9_-]*")


class SegmentGroup(NamedTuple):
    """Segments of one register by row number, nearest to the centroid first; `mode_cosines`: mean cosine by mode."""

    members: list[int]
    mode_cosines: Mapping[str, float]


def suggest_groups(unit: Matrix, turns: Sequence[int], modes: Mapping[str, Matrix]) -> list[SegmentGroup]:
    """Return the groups of segments that fit no mode, largest first.

    `unit` has a row of length 1 for each segment, `turns` its number of turns; `modes` has such rows for the segments
    of each chosen mode. All rows are of the same vector space.
    """
    if not len(unit):
        return []
    background = background_cosine(unit)
    min_cosine = background + GROUP_COHESION * (1 - background)
    suggestions = []
    for members in cluster_by_average_linkage(unit, min_cosine):
        size = sum(turns[member] for member in members)
        if max(MIN_GROUP_TURNS, MIN_GROUP_SHARE * sum(turns)) <= size <= MAX_GROUP_SHARE * sum(turns):
            group = unit[members]
            mode_cosines = {name: mean_cosine(group, rows) for name, rows in modes.items()}
            # Above this cosine the group and the mode's segments would have been clustered together.
            if max(mode_cosines.values(), default=-1.0) < min_cosine:
                nearest_first = [members[row] for row in np.argsort(-(group @ centroid(group)), kind="stable")]
                suggestions.append(SegmentGroup(nearest_first, mode_cosines))
    return sorted(suggestions, key=lambda group: -sum(turns[member] for member in group.members))


def mean_cosine(group: Matrix, mode: Matrix) -> float:
    """Return the mean cosine over all pairs of rows; 0 if the mode has no rows."""
    return float(group.mean(axis=0) @ mode.mean(axis=0)) if len(mode) else 0.0


def centroid(rows: Matrix) -> Vector:
    """Return the mean direction of the rows, of length 1."""
    mean = rows.mean(axis=0)
    length = float(np.linalg.norm(mean))
    direction: Vector = (mean / length if length else mean).astype(np.float32)
    return direction


def top_keywords(texts: Iterable[str], everything: Iterable[str], names: Collection[str] = ()) -> list[str]:
    """Return the words that distinguish `texts` from `everything`, best first, without `names` and numbers.

    A word's weight is its contribution to the divergence of the two document-frequency distributions (Tomokiyo and
    Hurst, "A Language Model Approach to Keyphrase Extraction", 2003).
    """
    (counts, size), (all_counts, all_size) = _document_frequencies(texts), _document_frequencies(everything)
    weights = {
        word: number * log(number / size * all_size / all_counts[word])
        for word, number in counts.items()
        if len(word) > 2 and not word.isdigit() and word not in names
    }
    more_frequent = [word for word, weight in weights.items() if weight > 0]
    return sorted(more_frequent, key=lambda word: (-weights[word], word))[:MAX_GROUP_TERMS]


def _document_frequencies(texts: Iterable[str]) -> tuple[Counter[str], int]:
    """Return for each word the number of texts that contain it, and the number of texts."""
    terms = [set(content_terms(text)) for text in texts]
    return Counter(word for words in terms for word in words), len(terms)


def suggest_mode_name(terms: Iterable[str], taken: Collection[str]) -> str:
    """Join the two best keywords that are valid in a name and have different stems; number the name if it is taken."""
    words = list({word[:STEM_CHARS]: word for word in reversed([*terms]) if _NAME.fullmatch(word)}.values())[::-1][:2]
    name = ("-".join(words) or "mode")[: MAX_MODE_NAME_CHARS - 4]
    return next(
        candidate for candidate in (name, *(f"{name}-{number}" for number in range(2, 1000))) if candidate not in taken
    )
