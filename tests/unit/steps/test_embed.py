"""The indexer's topic: a vector and what a turn is for leave in one event; a model is asked when that is told."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.internal.events import Forgotten, Remembered
from schemas.messages.records import Record
from schemas.state.memories import Memory
from streams.flow.support import backoff as patience
from tests.builders.turns import record
from tests.harnesses.worker import HERE, TOPICS, WorkerHarness, arriving, run


class EmbedSteps(WorkerHarness):
    """A worker's indexer on its topic, and the memories that it queued for a model."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, asks_model=True)
        self.due: list[tuple[int, str]] = []
        self.declare("code", "tiny32")
        self.step = self.embed_step(lambda partition, memory: self.due.append((partition, memory.text)))


def remembered(memory: Memory, offset: int = 0) -> Record:
    """A memory as the indexer reads it."""
    return arriving(Remembered(memory=memory), TOPICS.remembered, offset)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[EmbedSteps]:
    home = EmbedSteps(tmp_path)
    yield home
    home.words.close()


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "INITIAL_BACKOFF_S", 0.001)
    monkeypatch.setattr(patience, "MAX_BACKOFF_S", 0.001)


async def test_a_memory_gets_its_vector_and_what_it_is_for_in_one_event(home: EmbedSteps) -> None:
    memory = home.tell("The login fails and nobody knows why.", 0, mode="code")
    await run(home.step, remembered(memory))
    [said] = home.asked()
    assert (said.memory_id, said.status, said.mode) == (memory.memory_id, "ready", "code")
    assert said.interaction is not None
    assert said.run == home.ctx.worker_run_id
    assert await home.index.count(home.space("code", "tiny32"), HERE) == 1
    home.remember.embedded(said)
    assert home.kept(memory).reading.interaction == said.interaction


async def test_what_is_for_is_asked_of_users_turns_alone_and_once(home: EmbedSteps) -> None:
    theirs = home.tell("Let me see.", 0, role="assistant")
    known = home.tell("Fix the login.", 1)
    await run(home.step, remembered(known))
    home.remember.embedded(home.asked()[0])
    home.publisher.sent.clear()
    await run(home.step, remembered(theirs), remembered(home.kept(known), 1))
    assert [said.interaction for said in home.asked()] == [None, None]


async def test_pending_memories_are_queued_after_the_report_and_only_they(home: EmbedSteps) -> None:
    pending = home.tell("violin", 0)
    read = home.tell("cello", 1)
    read = read.model_copy(update={"reading": read.reading.model_copy(update={"status": "model"})})
    home.publisher.hold()
    running = asyncio.create_task(run(home.step, remembered(pending), remembered(read, 1)))
    for _ in range(200):
        await asyncio.sleep(0)
    assert home.due == []
    home.publisher.release()
    await running
    assert home.due == [(HERE, "violin")]


async def test_a_memory_that_comes_twice_in_a_batch_is_told_and_asked_about_once(home: EmbedSteps) -> None:
    memory = home.tell("violin", 0)
    await run(home.step, remembered(memory), remembered(memory, 1))
    assert (len(home.asked()), home.due) == (1, [(HERE, "violin")])


async def test_memory_gets_its_vector_without_the_general_model(home: EmbedSteps) -> None:
    home.embedders.missing("general")
    memory = home.tell("violin", 0, mode="code")
    await run(home.step, remembered(memory))
    assert [(said.status, said.interaction) for said in home.asked()] == [("ready", None)]


async def test_a_mode_whose_model_is_missing_delays_nobody(home: EmbedSteps) -> None:
    home.embedders.missing("tiny32")
    memories = [home.tell("violin", 0, mode="code"), home.tell("cello", 1)]
    await run(home.step, *(remembered(memory, offset) for offset, memory in enumerate(memories)))
    said = {one.memory_id: one for one in home.asked()}
    assert [said[memory.memory_id].status for memory in memories] == ["waiting", "ready"]
    assert "tiny32" in (said[memories[0].memory_id].error or "")
    assert said[memories[0].memory_id].interaction is not None


@pytest.mark.parametrize("what", ["embedder", "vector index"])
async def test_what_is_unavailable_is_waited_for(home: EmbedSteps, what: str) -> None:
    memory = home.tell("violin", 0)
    general = home.embedders.model("general")
    general.outage = what == "embedder"
    if what == "vector index":
        home.index.down()
    running = asyncio.create_task(run(home.step, remembered(memory)))
    while f'what="{what}"'.encode() not in home.meters.exposition():
        await asyncio.sleep(0.001)
    assert home.publisher.sent == []
    general.outage = False
    home.index.up()
    await running
    assert [said.status for said in home.asked()] == ["ready"]


async def test_the_vectors_of_a_forgotten_memory_go_and_nothing_is_told(home: EmbedSteps) -> None:
    memory = await home.told("violin", 0)
    place = memory.embedding.place
    assert place is not None
    gone = Forgotten(memory_id=memory.memory_id, places=(place,))
    await run(home.step, arriving(gone, TOPICS.remembered))
    assert await home.index.count(home.space("general", "general"), HERE) == 0
    assert (home.publisher.sent, home.due) == ([], [])


async def test_an_event_that_cannot_be_read_is_a_dead_letter_and_delays_nobody(home: EmbedSteps) -> None:
    memory = home.tell("violin", 0)
    await run(home.step, record(b"nonsense", topic=TOPICS.remembered), remembered(memory, 1))
    assert [out.value for out in home.publisher.to(TOPICS.dead_letters)] == [b"nonsense"]
    assert [said.status for said in home.asked()] == ["ready"]
