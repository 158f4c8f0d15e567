"""A worker's keeper on its topics, on a disk that is full at times."""

import json
from pathlib import Path
from typing import Any

from agents.memory.remember import Remember
from schemas.changes import Change
from schemas.failures import Unavailable
from schemas.memories import Memory
from schemas.turns import Turn
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.requests.channel import Channel
from streams.flow.steps.apply_changes import RememberChanges
from streams.flow.steps.remember import RememberEvents, RememberTurns
from tests.harnesses.worker import HERE, TOPICS, OneWorker, arriving, change, run

REPLY = (("reply_to", b"memory.replies"), ("correlation_id", b"1"))


class FullAtTimes(SqliteLexicalIndex):
    """A word index on a disk that is full at every `every`th write."""

    every = 0
    writes = 0

    def put(self, partition: int, memory: Memory) -> None:
        """Write, if there is room."""
        self._room()
        super().put(partition, memory)

    def remove(self, partition: int, memory_id: str) -> None:
        """Remove, if there is room for that."""
        self._room()
        super().remove(partition, memory_id)

    def _room(self) -> None:
        self.writes += 1
        if self.every and self.writes % self.every == 0:
            raise Unavailable("the disk is full")


class OneKeeper(OneWorker):
    """A worker's keeper on its topics."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "first")
        self.words.close()
        self.words = self.full = FullAtTimes(directory)
        self.words.open(HERE)
        object.__setattr__(self.ctx, "words", self.words)
        self.remember = Remember(self.memories, self.words, self.modes, self.spaces, self.claims, asks_model=True)
        self.changed: list[tuple[Change, int]] = []
        self.declare("code", "tiny32")
        self.declare("journal", "tiny48")
        turns = Channel(TOPICS.turns, {"turn.v1": Turn}, "write", keeps_rejected=True, outlives_deadline=True)
        changes = Channel(TOPICS.changes, {"change.v1": Change}, None, keeps_rejected=True, outlives_deadline=True)
        self.turns = RememberTurns(turns, self.remember, self.ctx)
        self.events = RememberEvents(self.remember, self.ctx)
        told = lambda change, partition: self.changed.append((change, partition))  # noqa: E731
        self.changes = RememberChanges(changes, self.remember, told, self.ctx)

    async def make(self, made: Change, offset: int = 0) -> Any:
        """Have a change made; returns its answer."""
        self.publisher.replies.clear()
        await run(self.changes, arriving(made, TOPICS.changes, offset, headers=REPLY))
        [reply] = self.publisher.replies
        answer = json.loads(reply.value or b"")
        return answer.get("result", answer.get("error"))

    def texts(self, mode: str) -> list[str]:
        """What is in a mode, by the records."""
        return sorted(memory.text for memory in self.memories.all() if memory.mode == mode)

    def usage(self, name: str, **labels: str) -> float:
        """How often something was counted."""
        return self.meters.registry.get_sample_value(f"modestream_{name}_total", labels) or 0


MOVE = change("move", mode="code", to="journal", result={"name": "code", "moved": 0, "forgotten": 0})
FORGET = change("forget", mode="code", result={"name": "code", "moved": 0, "forgotten": 0})
