"""Suggest modes that a user has not declared: a report that changes nothing.

Enters: the command `suggest_modes`. Leaves: groups of turns that have the default mode and fit none of the user's
modes, each with its size, examples, keywords, memory ids and an unused name. Covers all projects of the user that the
sender may read, at most about 5,000 turns sampled evenly over time; takes about a second.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.modes.vector_spaces import VectorSpaces
from agents.ports.commands import CommandResult
from agents.ports.indexes import LexicalIndex, VectorIndex
from agents.ports.stores import Memories
from agents.rules.clustering.clustering import normalise_rows
from agents.rules.modes.mode_suggesting import (
    MIN_GROUP_TURNS,
    Segment,
    SegmentGroup,
    chosen_segments_by_mode,
    default_segments_by_location,
    split_segments,
    suggest_groups,
    suggest_mode_name,
    top_keywords,
)
from schemas.failures import ModelMissing
from schemas.messages.commands import Command
from schemas.models.vectors import Matrix, Vector
from schemas.moments import iso
from schemas.state.memories import VectorLocation
from schemas.state.modes import Mode, VectorSpace, collection_name

PAGE_SIZE = 200
"""Vectors that are read at once: with token vectors some megabytes."""

MAX_EMBEDDED_TEXTS = 24
"""Texts of a mode that are embedded again: a quarter of a second, and enough to represent the mode."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SegmentVectors:
    """Segments in, one row of length 1 for each out."""

    index: VectorIndex
    spaces: VectorSpaces

    async def stored(self, segments: Sequence[Segment], location: VectorLocation) -> tuple[Matrix, list[Segment]]:
        """Return the rows of these segments in a location, and the segments; turns without a vector are left out."""
        vectors = await self._read([memory.memory_id for segment in segments for memory in segment], location)
        stored = [[memory for memory in segment if memory.memory_id in vectors] for segment in segments]
        remaining: list[Segment] = [segment for segment in stored if segment]
        return _rows([vectors[memory.memory_id] for memory in segment] for segment in remaining), remaining

    async def of_mode(self, mode: Mode, segments: Sequence[Segment], location: VectorLocation, here: Mode) -> Matrix:
        """Return the rows of a mode's segments in the space of `location`, which is the space of the mode `here`.

        Reads the vectors of the same space; otherwise embeds some texts, or without texts the mode's description.
        """
        same = [[memory for memory in segment if memory.embedding.space == location.space] for segment in segments]
        if any(same):
            own_location = VectorLocation(mode=mode.name, space=location.space)
            rows, _ = await self.stored([segment for segment in same if segment], own_location)
            return rows
        # Segments evenly over time, with at most `MAX_EMBEDDED_TEXTS` turns.
        size = max((len(segment) for segment in segments), default=1)
        step = max(1, len(segments) * size // MAX_EMBEDDED_TEXTS)
        sample = segments[::step][: max(1, MAX_EMBEDDED_TEXTS // size)]
        texts = [[memory.text for memory in segment] for segment in sample]
        texts = texts or [[mode.description]] * bool(mode.description)
        try:
            embedder, space = self.spaces.resolve(here)
            if space.fingerprint.digest != location.space:
                return _rows([])
            return _rows([[(await embedder.passage(text)).pooled for text in each] for each in texts])
        except ModelMissing:
            return _rows([])

    async def _read(self, memory_ids: Sequence[str], location: VectorLocation) -> Mapping[str, Vector]:
        fingerprint = (await self.index.spaces()).get(collection_name(location.mode, location.space))
        if fingerprint is None:
            return {}
        space = VectorSpace(location.mode, fingerprint)
        vectors: dict[str, Vector] = {}
        for start in range(0, len(memory_ids), PAGE_SIZE):
            vectors.update(await self.index.pooled(space, memory_ids[start : start + PAGE_SIZE]))
        return vectors


def _rows(vectors: Iterable[Sequence[Vector]]) -> Matrix:
    """Return the mean of each, of length 1, shape (segments, dim)."""
    means = [np.mean(each, axis=0) for each in vectors]
    if not means:
        return np.zeros((0, 1), np.float32)
    return normalise_rows(np.array(means, np.float32))


MAX_READ_SEGMENTS = 600
"""Segments that are grouped: up to 4,800 turns, a fifth of a second in a thread."""

MAX_EXAMPLES = 3
"""Turns shown for a group."""

MAX_EXAMPLE_CHARS = 200

SEGMENT_BATCH_SIZE = 20
"""Segments read between two pauses for the event loop: about 10 ms."""


@dataclass(frozen=True, slots=True)
class ModeSuggestion:
    """A group of segments with its keywords, and the mode that its turns have by default."""

    group: SegmentGroup
    turns: Sequence[Segment]
    mode: str
    terms: Sequence[str]


class SuggestModes:
    """A command in, suggestions out."""

    def __init__(self, memories: Memories, words: LexicalIndex, index: VectorIndex, spaces: VectorSpaces) -> None:
        self._memories = memories
        self._words = words
        self._spaces = spaces
        self._vectors = SegmentVectors(index, spaces)

    async def suggest_modes(self, command: Command, _offset: int) -> CommandResult:
        """Group the turns that fit no declared mode."""
        boundary, projects = command.scope.boundary, command.permitted_projects
        modes = {mode.name: mode for mode in self._spaces.visible(boundary, projects)}
        read = await self._read(split_segments(self._words.memory_columns(boundary), MAX_READ_SEGMENTS, projects))
        chosen, suggestions = chosen_segments_by_mode(read), []
        for location, undecided in sorted(
            default_segments_by_location(read).items(), key=lambda group: (group[0].mode, group[0].space)
        ):
            if location.mode in modes and sum(map(len, undecided)) >= MIN_GROUP_TURNS:
                unit, segments = await self._vectors.stored(undecided, location)
                rows = {
                    name: await self._vectors.of_mode(mode, chosen.get(name, ()), location, modes[location.mode])
                    for name, mode in modes.items()
                    # Similarity to the default mode suppresses no suggestion, unless its turns were chosen explicitly.
                    if name != location.mode or name in chosen
                }
                suggestions += await asyncio.to_thread(_suggest_groups, unit, segments, rows, location.mode)
        suggestions.sort(key=lambda suggestion: -sum(map(len, suggestion.turns)))
        looked_at = sum(map(len, read))
        return CommandResult({"suggestions": self._view(suggestions, set(modes)), "looked_at": looked_at})

    async def _read(self, wanted: Sequence[Sequence[str]]) -> list[Segment]:
        """Read the existing records of segments; pauses for the event loop."""
        segments = []
        for number, memory_ids in enumerate(wanted):
            records = [self._memories.get(memory_id) for memory_id in memory_ids]
            segments.append([memory for memory in records if memory is not None and memory.superseded_by is None])
            if number % SEGMENT_BATCH_SIZE == SEGMENT_BATCH_SIZE - 1:
                await asyncio.sleep(0)
        return [segment for segment in segments if segment]

    def _view(self, suggestions: Sequence[ModeSuggestion], taken: set[str]) -> list[dict[str, Any]]:
        shown = []
        for suggestion in suggestions:
            name = suggest_mode_name(suggestion.terms, taken)
            taken.add(name)
            nearest = max(suggestion.group.mode_cosines.items(), key=lambda pair: pair[1], default=None)
            # The longest turn of each of the most typical segments; read again, as it may be forgotten by now.
            typical = [max(turns, key=lambda memory: len(memory.text)) for turns in suggestion.turns]
            current = (self._memories.get(memory.memory_id) for memory in typical)
            shown.append(
                {
                    "name": name,
                    "size": sum(map(len, suggestion.turns)),
                    "terms": list(suggestion.terms),
                    "in_mode": suggestion.mode,
                    "nearest": nearest and {"mode": nearest[0], "cosine": round(nearest[1], 3)},
                    "examples": [
                        {
                            "memory_id": memory.memory_id,
                            "text": memory.text[:MAX_EXAMPLE_CHARS],
                            "occurred_at": iso(memory.occurred_at),
                        }
                        for memory in current
                        if memory is not None
                    ][:MAX_EXAMPLES],
                    "memory_ids": [memory.memory_id for turns in suggestion.turns for memory in turns],
                }
            )
        return shown


def _suggest_groups(
    unit: Matrix, segments: Sequence[Segment], rows: Mapping[str, Matrix], mode: str
) -> list[ModeSuggestion]:
    """Group segments and find their keywords: one or two tenths of a second of arithmetic."""
    speakers = {word for turns in segments for turn in turns for word in (turn.speaker or "").lower().split()}
    comparable = {name: each for name, each in rows.items() if np.size(each)}
    all_texts = [memory.text for turns in segments for memory in turns]
    suggestions = []
    for group in suggest_groups(unit, [len(turns) for turns in segments], comparable):
        turns = [segments[member] for member in group.members]
        texts = [memory.text for segment in turns for memory in segment]
        suggestions.append(ModeSuggestion(group, turns, mode, top_keywords(texts, all_texts, speakers)))
    return suggestions
