"""Store conversations as one user and compute the query features of their questions with the product's own code.

Uses a real lexical index in a temporary folder and the real embedder, so the features equal those of a request.
"""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agents.modes.vector_spaces import VectorSpaces, encode_memory
from agents.ports.indexes import LexicalWriter
from agents.retrieval.hits import LexicalFeatures, collect_query_features
from agents.retrieval.vector_search import VectorSearch
from agents.rules.index.columns import Mask
from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.memory.versions import identify_turn, next_memory
from agents.rules.query.plans import plan_searches
from agents.rules.ranking.memory_features import QueryFeatures
from agents.rules.ranking.rank_fusion import choose_fusion_method
from agents.rules.text.passages import embedding_text
from schemas.messages.retrieval import RetrieveRequest
from schemas.messages.turns import Turn
from schemas.models.vectors import Point
from schemas.scopes import Selector
from schemas.state.memories import Embedding, Memory, VectorLocation
from schemas.state.modes import GENERAL, GENERAL_MODE, ModeDeclarations, VectorSpace
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.stores import at_partition
from training.ranking.conversations import Conversation, LabelledQuestion
from training.ranking.embedding import CachedEmbedder
from training.ranking.exact_index import ExactIndex

PARTITION = 0
"""The partition of all users."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the inputs of its ranking; `evidence` are numbers of memories."""

    user: str
    conversation: str
    labelled: LabelledQuestion
    query_features: QueryFeatures
    admitted: Mask
    evidence: frozenset[int]


class NoDeclarations:
    """Implements `agents.ports.stores.Modes`: every user has only the mode `general`."""

    def get(self, boundary: str) -> ModeDeclarations:  # noqa: ARG002 - signature of the port
        """Return empty declarations."""
        return ModeDeclarations()


@dataclass(frozen=True, slots=True)
class DayAfterClock:
    """A fixed clock, a day after the last turn."""

    last: datetime

    def now(self) -> datetime:
        """Return the fixed time."""
        return (self.last + timedelta(days=1)).astimezone(UTC)


def load_questions(user: str, conversations: Sequence[Conversation], embedder: CachedEmbedder) -> Iterator[Question]:
    """Store the conversations as one user's, and yield all their questions."""
    with tempfile.TemporaryDirectory() as folder:
        index = SqliteLexicalIndex(Path(folder))
        index.open(PARTITION)
        try:
            yield from asyncio.run(_questions(user, conversations, embedder, at_partition(index, PARTITION)))
        finally:
            index.close()


async def _questions(
    user: str, conversations: Sequence[Conversation], embedder: CachedEmbedder, words: LexicalWriter
) -> list[Question]:
    turns = [turn for conversation in conversations for turn in conversation.turns]
    memories = [_memory(user, turn, place, embedder) for place, turn in enumerate(turns)]
    for memory in memories:
        words.put(LexicalDocument(memory))
    vectors = VectorSearch(
        ExactIndex([await _point(memory, embedder) for memory in memories]), VectorSpaces(NoDeclarations(), embedder)
    )
    clock = DayAfterClock(max(one.occurred_at for one in memories))
    memory_columns = words.memory_columns(user)
    numbers = {memory.turn_id: memory_columns.number_of[memory.memory_id] for memory in memories}
    found = []
    for conversation in conversations:
        for one in conversation.questions:
            request = RetrieveRequest(scope=Selector.model_validate({"user_id": user}), query=one.text, mode=GENERAL)
            [search] = plan_searches(request, ModeDeclarations(), lambda _: memory_columns)
            lexical = LexicalFeatures(words, clock, search)
            nearest = await vectors.nearest(search, lexical)
            method = choose_fusion_method([result.status for result in nearest])
            features, admitted = collect_query_features(search, lexical, nearest, method)
            evidence = frozenset(numbers[turn_id] for turn_id in one.evidence)
            found.append(Question(user, conversation.name, one, features, admitted, evidence))
    return found


def _memory(user: str, turn: Turn, place: int, embedder: CachedEmbedder) -> Memory:
    """Return the record of a turn with a written vector."""
    stored = turn.model_copy(update={"scope": turn.scope.model_copy(update={"user_id": user})})
    assert turn.occurred_at is not None
    memory = next_memory(
        stored, identify_turn(stored, turn.occurred_at), None, (GENERAL, "fallback"), place, asks_model=False
    )
    space = VectorSpace(GENERAL, embedder.fingerprint)
    ready = Embedding(status="ready", place=VectorLocation(mode=GENERAL, space=space.fingerprint.digest))
    return memory.model_copy(update={"embedding": ready})


async def _point(memory: Memory, embedder: CachedEmbedder) -> Point:
    made = await encode_memory(embedder.for_text(GENERAL_MODE, embedding_text(memory)), memory)
    return Point(
        memory_id=memory.memory_id,
        vector=made.pooled,
        boundary=memory.boundary,
        partition=PARTITION,
        scope=memory.scope,
        mode=memory.mode,
        type=memory.type,
        occurred_ms=memory.occurred_ms,
        content_hash=memory.content_hash,
        tokens=made.tokens,
        passages=made.passages,
    )
