"""Make the vectors of a memory: of a long turn passage by passage, of any other as one text."""

import asyncio
from collections.abc import Sequence

import numpy as np

from agents.ports.embedder import Embedder
from agents.rules.text.passages import embedded_passages, embedding_text
from schemas.models.vectors import Encoded, PassageVectors
from schemas.state.memories import Memory


async def encode_memory(embedder: Embedder, memory: Memory) -> Encoded:
    """Return a memory's vectors, by an embedder for its text. Raises what the embedder raises."""
    passages = embedded_passages(memory)
    if not passages:
        return await embedder.passage(embedding_text(memory), boundary=memory.boundary)
    return _joined(await asyncio.gather(*(embedder.passage(text, boundary=memory.boundary) for text in passages)))


def _joined(passages: Sequence[Encoded]) -> Encoded:
    """Return the vectors of a text from those of its passages.

    The pooled one is their mean, and shorter than they are: its product with a question is the mean of their cosines.
    Scaled to length 1 it would be near to every question about its topic, and long replies would come first: on chats
    with an assistant that finds 4 points less.
    """
    counts = np.array([len(one.tokens) for one in passages], np.int64)
    tokens = np.concatenate([one.tokens for one in passages])
    vectors = PassageVectors(np.stack([one.pooled for one in passages]), counts)
    return Encoded(vectors.mean(), tokens, passages=vectors)
