"""Conversation segments: runs of consecutive turns of one conversation. Pure.

A register lasts longer than a turn: a segment's mean vector shows it where single turns are too short.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from agents.rules.index.columns import MISSING, IntArray
from agents.rules.index.memory_columns import MemoryColumns
from schemas.state.memories import Memory, VectorLocation
from schemas.state.modes import ModeSource

MAX_SEGMENT_TURNS = 8
"""Turns of a segment. Eight long conversations mixed into one: segments of eight turns separate by topic; of segments
of four, half end up in a single cluster."""

MAX_PAUSE_MS = 6 * 3600 * 1000
"""Milliseconds. A longer pause starts a new segment."""

EXPLICIT_SOURCES: frozenset[ModeSource] = frozenset({"caller", "model"})
"""Sources of a mode that was chosen for the turn itself."""

Segment = Sequence[Memory]
"""Consecutive turns of one conversation."""


def split_segments(memories: MemoryColumns, limit: int) -> list[list[str]]:
    """Return the ids of a boundary's turns by segment, without superseded turns.

    Of more than `limit` segments, an evenly spaced selection is returned, the first and the last included.
    """
    columns = memories.columns
    turns = np.flatnonzero(columns.live & ~columns.superseded & (columns.conversations != MISSING))
    order = np.lexsort((columns.source[turns], columns.occurred_ms[turns], columns.conversations[turns]))
    turns = turns[order]
    begins = np.ones(len(turns), np.bool_)
    begins[1:] = np.diff(columns.conversations[turns]) != 0
    begins[1:] |= np.diff(columns.occurred_ms[turns]) > MAX_PAUSE_MS
    segments = [segment for run in np.split(turns, np.flatnonzero(begins)[1:]) for segment in _cut(run)]
    selected = sorted(set(np.linspace(0, len(segments) - 1, min(limit, len(segments))).astype(int).tolist()))
    return [[memories.id_of[number] for number in segments[position].tolist()] for position in selected]


def default_segments_by_location(segments: Iterable[Segment]) -> Mapping[VectorLocation, list[Segment]]:
    """Return the turns with a default mode, by segment, under the segment's most common vector location."""
    found: defaultdict[VectorLocation, list[Segment]] = defaultdict(list)
    for segment in segments:
        ready = [memory for memory in segment if memory.mode_source not in EXPLICIT_SOURCES and memory.embedding.space]
        locations = Counter(memory.embedding.place for memory in ready if memory.embedding.place is not None)
        for location, _ in locations.most_common(1):
            found[location].append([memory for memory in ready if memory.embedding.place == location])
    return found


def chosen_segments_by_mode(segments: Iterable[Segment]) -> Mapping[str, list[Segment]]:
    """Return the turns with an explicitly chosen mode, by segment, under the mode's name."""
    found: defaultdict[str, list[Segment]] = defaultdict(list)
    for segment in segments:
        chosen = [memory for memory in segment if memory.mode_source in EXPLICIT_SOURCES]
        for mode in dict.fromkeys(memory.mode for memory in chosen):
            found[mode].append([memory for memory in chosen if memory.mode == mode])
    return found


def _cut(run: IntArray) -> list[IntArray]:
    return [run[start : start + MAX_SEGMENT_TURNS] for start in range(0, len(run), MAX_SEGMENT_TURNS)]
