"""One user with some conversations, stored and asked by the product's own code: what the ranking sees of each question.

Enters: conversations. Leaves, for each question, the clues that a request would be ranked by. Guaranteed: words go
through a real word index in a temporary folder, vectors through the real embedder; what decides is the product's.
"""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agents.modes.vector_spaces import VectorSpaces
from agents.retrieval.hits import HitRanker
from agents.retrieval.lexical_features import LexicalFeatures
from agents.retrieval.vector_search import VectorSearch
from agents.rules.index.columns import Mask
from agents.rules.memory.versions import identify_turn, next_memory
from agents.rules.query.plans import plan_searches
from agents.rules.ranking.query_features import QueryFeatures
from agents.rules.ranking.rank_fusion import choose_fusion_method
from agents.rules.ranking.weights import RankingWeights
from agents.rules.text.embedding_text import embedding_text
from schemas.memories import Embedding, Memory, VectorLocation
from schemas.modes import GENERAL, ModeDeclarations, VectorSpace
from schemas.retrieval import RetrieveRequest
from schemas.scopes import Selector
from schemas.turns import Turn
from schemas.vectors import Point
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from training.ranking.conversations import Asked, Conversation
from training.ranking.embedding import KeptEmbedder
from training.ranking.exact_index import ExactIndex

PARTITION = 0
"""Where everything lies."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with all that its ranking is made from. `evidence` are numbers of memories."""

    user: str
    conversation: str
    asked: Asked
    clues: QueryFeatures
    admitted: Mask
    evidence: frozenset[int]


class NothingDeclared:
    """Implements `agents.ports.Modes`: every user has the mode `general` and no other."""

    def get(self, partition: int, boundary: str) -> ModeDeclarations:  # noqa: ARG002 - the port asks with them
        """Nothing but `general`."""
        return ModeDeclarations()

    def put(self, partition: int, boundary: str, declared: ModeDeclarations) -> None:
        """Nothing is declared here."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class DayAfter:
    """A clock that stands still a day after the last turn."""

    last: datetime

    def now(self) -> datetime:
        """That day."""
        return (self.last + timedelta(days=1)).astimezone(UTC)


def questions_of(user: str, conversations: Sequence[Conversation], embedder: KeptEmbedder) -> Iterator[Question]:
    """Store the conversations as one user's, and ask all their questions."""
    with tempfile.TemporaryDirectory() as folder:
        words = SqliteLexicalIndex(Path(folder))
        words.open(PARTITION)
        try:
            yield from asyncio.run(_asked(user, conversations, embedder, words))
        finally:
            words.close()


async def _asked(
    user: str, conversations: Sequence[Conversation], embedder: KeptEmbedder, words: SqliteLexicalIndex
) -> list[Question]:
    turns = [turn for conversation in conversations for turn in conversation.turns]
    memories = [_memory(user, turn, place, embedder) for place, turn in enumerate(turns)]
    for memory in memories:
        words.put(PARTITION, memory)
    index = ExactIndex([await _point(memory, embedder) for memory in memories])
    spaces = VectorSpaces(NothingDeclared(), embedder)
    vectors = VectorSearch(index, spaces)
    clock, hits = DayAfter(max(one.occurred_at for one in memories)), HitRanker(lambda _, __: None, RankingWeights({}))
    roster = words.memory_columns(PARTITION, user)
    numbers = {memory.turn_id: roster.number_of[memory.memory_id] for memory in memories}
    found = []
    for conversation in conversations:
        for asked in conversation.questions:
            request = RetrieveRequest(scope=Selector.model_validate({"user_id": user}), query=asked.text, mode=GENERAL)
            [search] = plan_searches(request, PARTITION, ModeDeclarations(), lambda _: roster, lambda _: None)
            told = LexicalFeatures(words, clock, search)
            nearest = await vectors.nearest(search, told)
            clues, admitted = hits.query_features(
                search, told, nearest, choose_fusion_method([one.status for one in nearest])
            )
            evidence = frozenset(numbers[one] for one in asked.evidence)
            found.append(Question(user, conversation.name, asked, clues, admitted, evidence))
    return found


def _memory(user: str, turn: Turn, place: int, embedder: KeptEmbedder) -> Memory:
    """The record that a turn makes, with its vector written."""
    stored = turn.model_copy(update={"scope": turn.scope.model_copy(update={"user_id": user})})
    assert turn.occurred_at is not None
    memory = next_memory(
        stored, identify_turn(stored, turn.occurred_at), None, (GENERAL, "fallback"), place, asks_model=False
    )
    space = VectorSpace(GENERAL, embedder.fingerprint)
    ready = Embedding(status="ready", place=VectorLocation(mode=GENERAL, space=space.fingerprint.digest))
    return memory.model_copy(update={"embedding": ready})


async def _point(memory: Memory, embedder: KeptEmbedder) -> Point:
    made = await embedder.passage(embedding_text(memory))
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
    )
