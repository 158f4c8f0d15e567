"""The steps of `Remember` in a worker, on a disk that is sometimes full."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.rules.index.lexical_document import LexicalDocument
from schemas.failures import Unavailable
from schemas.internal.changes import Change
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.requests.channel import Channel, EventReader
from streams.flow.steps.apply_changes import AfterForgetting, ApplyChanges, ForgetReceipts
from streams.flow.steps.remember import MEMORY_EVENTS, HasVector, RememberEvents
from streams.flow.steps.step import CommittingStep
from streams.flow.turns_log import TurnsLog
from tests.builders.stores import commits_over, fake_stores, remember_over
from tests.harnesses.worker import HERE, TOPICS, WorkerHarness, change, event_record, run_step

REPLY = (("reply_to", b"memory.replies"), ("correlation_id", b"1"))


class SometimesFullIndex(SqliteLexicalIndex):
    """A lexical index that fails every `every`th write."""

    every = 0
    writes = 0

    def put(self, partition: int, document: LexicalDocument) -> None:
        """Write, or raise Unavailable."""
        self._room()
        super().put(partition, document)

    def remove(self, partition: int, memory_id: str) -> None:
        """Remove, or raise Unavailable."""
        self._room()
        super().remove(partition, memory_id)

    def _room(self) -> None:
        self.writes += 1
        if self.every and self.writes % self.every == 0:
            raise Unavailable("the disk is full")


class RememberSteps(WorkerHarness):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "first")
        self.words.close()
        self.words = self.full = SometimesFullIndex(directory)
        self.words.open(HERE)
        self.stores = fake_stores(self.words, self.memories, self.modes, self.claims, interactions=self.interactions)
        commit = commits_over(self.words, self.meters)
        self.ctx = replace(self.ctx, stores=self.stores, commit=commit)
        self.remember = remember_over(self.stores.at(HERE), self.embedders, asks_model=True)
        self.changed: list[tuple[Change, int]] = []
        self.declare("code", "tiny32")
        self.declare("journal", "tiny48")
        self.turns = self.turns_step()
        self.events = CommittingStep(self.events_step(), self.ctx.commit)
        self.changes = self._changes()

    def follow(self, log: TurnsLog, applied: int) -> None:
        """Apply changes after their turns of a log, of which those before `applied` are applied."""
        self.ctx = replace(self.ctx, turns_log=log)
        self.progress.start(HERE, applied)
        self.changes = self._changes()

    def events_step(self, has_vector: HasVector | None = None) -> RememberEvents:
        """Return the step for events; without `has_vector` every reported vector is trusted."""
        return RememberEvents(
            EventReader(MEMORY_EVENTS, self.ctx.replies),
            lambda _: self.remember,
            self.stores,
            self.ctx.commit,
            self.publisher,
            TOPICS,
            self.meters,
            worker_run_id=self.ctx.worker_run_id,
            has_vector=has_vector,
        )

    def changes_step(self) -> ApplyChanges:
        return ApplyChanges(
            lambda _: self.remember,
            self.stores,
            self.ctx.commit,
            self.publisher,
            TOPICS,
            self.meters,
            progress=self.progress,
            turns_log=self.ctx.turns_log,
            on_changed=lambda change, partition: self.changed.append((change, partition)),
            after_forgetting=AfterForgetting(
                self.ctx.jobs, self.ctx.consolidations, self.ctx.boundaries, TOPICS.boundaries
            ),
            receipts=ForgetReceipts(self.ctx.receipts, TOPICS.receipts, self.clock, None),
            draw_map_at=lambda _: self.draw_map,
        )

    def _changes(self) -> CommittingStep:
        changes = Channel(TOPICS.changes, {"change.v1": Change}, None, keeps_rejected=True, outlives_deadline=True)
        return self.committing(changes, self.changes_step(), window=16, pause_s=0.0)

    async def apply(self, requested: Change, offset: int = 0) -> Any:
        self.publisher.replies.clear()
        await run_step(self.changes, event_record(requested, TOPICS.changes, offset, headers=REPLY))
        [reply] = self.publisher.replies
        answer = json.loads(reply.value or b"")
        return answer.get("result", answer.get("error"))

    def texts(self, mode: str) -> list[str]:
        return sorted(memory.text for memory in self.memories.all() if memory.mode == mode)

    def usage(self, name: str, **labels: str) -> float:
        return self.meters.registry.get_sample_value(f"modestream_{name}_total", labels) or 0


MOVE = change("move", mode="code", to="journal", result={"name": "code", "moved": 0, "forgotten": 0})
FORGET = change("forget", mode="code", result={"name": "code", "moved": 0, "forgotten": 0})
