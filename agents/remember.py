"""Keeps the memories: the only writer of their records and of the word index.

Turns come in, in the order of their partition; each is a record and can be found by its words when `turn` returns.
What the indexer did comes in as `Embedded`; it moves the embedding status and nothing else. Everything is an
overwrite under a deterministic id: the same input again, after a kill or a replay, leaves the same state.
Both methods return the events that must follow, and never await: one event is handled at a time.
"""

from dataclasses import dataclass

from agents.ports import Memories
from agents.rules.precedence import decided_mode
from agents.rules.versions import (
    identity,
    is_outdated,
    is_redelivered,
    is_repeated,
    next_memory,
    with_embedding,
)
from agents.word_port import WordIndex
from schemas.events import Embedded, Remembered
from schemas.memories import Embedding, Memory
from schemas.modes import GENERAL
from schemas.moments import moment_of
from schemas.records import Record
from schemas.turns import Turn, TurnAccepted


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a turn became, and the event that must follow, if any."""

    result: TurnAccepted
    event: Remembered | None


class Remember:
    """Turns in, records and word index written, `Remembered` out."""

    def __init__(self, memories: Memories, words: WordIndex) -> None:
        self._memories = memories
        self._words = words

    def turn(self, turn: Turn, record: Record) -> Accepted:
        """Accept a turn. Raises Rejected where its mode is not declared."""
        who = identity(turn, moment_of(record.timestamp_ms))
        known = self._memories.get(record.partition, who.memory_id)
        if known is not None and is_repeated(known, who):
            return self._again(known, record)
        if known is not None and is_outdated(known, who, record.offset):
            return Accepted(_result(known, duplicate=False), None)
        memory = next_memory(turn, who, known, decided_mode(turn.mode, (GENERAL,)), record.offset)
        self._write(record.partition, memory)
        return Accepted(_result(memory, duplicate=False), Remembered(memory=memory))

    def embedded(self, embedded: Embedded, partition: int) -> Remembered | None:
        """Note what became of a memory's vector; returns the event that asks for a new one where it is not right."""
        memory = self._memories.get(partition, embedded.memory_id)
        if memory is None:
            return None
        if embedded.content_hash != memory.content_hash:
            # The record moved on. Its own vector is on the way, unless it had been written before this older one.
            return self._embed_again(partition, memory) if memory.embedding.status == "ready" else None
        if embedded.status == "stale":
            return self._embed_again(partition, memory)
        self._write(partition, with_embedding(memory, _embedding(embedded)))
        return None

    def _again(self, known: Memory, record: Record) -> Accepted:
        """A turn whose text stands already: written once more if this very record made it, else left alone.

        A worker that was killed may have written its own disk and not yet Kafka.
        """
        redelivered = is_redelivered(known, record.offset)
        if redelivered:
            self._write(record.partition, known)
        waits = redelivered and known.embedding.status == "pending"
        return Accepted(_result(known, duplicate=not redelivered), Remembered(memory=known) if waits else None)

    def _embed_again(self, partition: int, memory: Memory) -> Remembered:
        waiting = with_embedding(memory, Embedding())
        self._write(partition, waiting)
        return Remembered(memory=waiting)

    def _write(self, partition: int, memory: Memory) -> None:
        # The words first: if they can't be written, the record says so when all of it is tried again.
        self._words.put(partition, memory)
        self._memories.put(partition, memory)


def _embedding(embedded: Embedded) -> Embedding:
    return Embedding(
        status="ready" if embedded.status == "ready" else "failed",
        space=embedded.space,
        content_hash=embedded.content_hash,
        embedded_at=embedded.at,
        error=embedded.error,
    )


def _result(memory: Memory, *, duplicate: bool) -> TurnAccepted:
    return TurnAccepted(
        memory_id=memory.memory_id,
        turn_id=memory.turn_id or "",
        mode=memory.mode,
        mode_source=memory.mode_source,
        version=memory.version,
        duplicate=duplicate,
    )
