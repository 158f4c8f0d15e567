"""Compare the embedder of a mode with `general` on the mode's own turns. Writes nothing."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.modes.vector_spaces import VectorSpaces, encode_memory
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.modes.embedder_comparison import MIN_TURNS, SampledTurn, compare, describe, sample_turns
from agents.rules.text.passages import embedding_text
from schemas.failures import ModelMissing, Unavailable
from schemas.internal.changes import Job
from schemas.models.vectors import Vector
from schemas.state.modes import GENERAL, GENERAL_MODE, Mode

MAX_MODES = 8
"""Modes of one job: some minutes of the models."""

VectorPair = tuple[Vector, Vector]
"""The vectors of one turn: by the mode's embedder, by `general`."""


@dataclass(frozen=True, slots=True)
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
        """Return the turns to compare; none where the mode has no embedder of its own."""
        if mode.embedder == GENERAL:
            return []
        scope = None if job.all_projects else job.scope.model_dump()
        columns = self.words.memory_columns(job.scope.boundary)
        return sample_turns(columns, lambda kind: kind.mode == mode.name and scope in (None, dict(kind.scope)))

    async def encode(self, turn: SampledTurn, mode: Mode) -> VectorPair | None:
        """Embed a turn by both; None if it is gone, or a model can't take it.

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
