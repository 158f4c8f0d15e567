"""Make the vectors of a memory: of a long turn passage by passage, of any other as one text."""

import asyncio
from collections.abc import Sequence

import numpy as np

from agents.ports.embedder import Embedder
from agents.rules.text.embedding_text import embedded_passages, embedding_text
from schemas.models.vectors import Encoded, PassageVectors
from schemas.state.memories import Memory


async def encode_memory(embedder: Embedder, memory: Memory) -> Encoded:
    """Return a memory's vectors, by an embedder for its text. Raises what the embedder raises."""
    passages = embedded_passages(memory)
    if not passages:
        return await embedder.passage(embedding_text(memory), boundary=memory.boundary)
    return _joined(await asyncio.gather(*(embedder.passage(text, boundary=memory.boundary) for text in passages)))


def _joined(passages: Sequence[Encoded]) -> Encoded:
    """Return the vectors of a text from those of its passages."""
    pooled = np.stack([one.pooled for one in passages])
    mean = pooled.mean(axis=0)
    # As long as a passage's own vector: 1 where the embedder normalises.
    scale = np.linalg.norm(pooled, axis=1).mean() / max(float(np.linalg.norm(mean)), np.finfo(np.float32).tiny)
    counts = np.array([len(one.tokens) for one in passages], np.int64)
    tokens = np.concatenate([one.tokens for one in passages])
    return Encoded((mean * scale).astype(np.float32), tokens, passages=PassageVectors(pooled, counts))
