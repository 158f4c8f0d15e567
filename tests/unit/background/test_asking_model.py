"""Which memories a language model is asked about, when, and how often."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from streams.flow.background import asking_model
from tests.harnesses.model_asking import AT_ONCE, ModelQueueHarness, turns_of_the_loop, until
from tests.harnesses.worker import HERE


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that are pending are looked for without a pause."""
    monkeypatch.setattr(asking_model, "PENDING_POLL_INTERVAL_S", 0.0)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[ModelQueueHarness]:
    home = ModelQueueHarness(tmp_path)
    yield home
    home.words.close()


async def test_a_fresh_turn_is_asked_about_and_the_keeper_told(home: ModelQueueHarness) -> None:
    async with home.asking() as asking:
        [memory] = home.tells(1)
        asking.ask(HERE, memory)
        await until(lambda: bool(home.understood()))
    [said] = home.understood()
    assert said.found is not None
    assert (said.memory_id, said.found.mode, said.profile) == (memory.memory_id, "code", "default")
    assert [out.key for out in home.publisher.sent] == [b"u1"]


async def test_no_more_are_asked_at_the_same_time_than_may_be(home: ModelQueueHarness) -> None:
    home.language.released.clear()
    async with home.asking() as asking:
        for memory in home.tells(10):
            asking.ask(HERE, memory)
        await until(lambda: len(home.language.asked) == AT_ONCE)
        await turns_of_the_loop()
        assert len(home.language.asked) == AT_ONCE
        home.language.released.set()
        await until(lambda: len(home.understood()) == 10)


@pytest.mark.usefixtures("quick")
async def test_what_stands_as_pending_is_asked_about_without_being_told(home: ModelQueueHarness) -> None:
    home.tells(5)
    async with home.asking():
        await until(lambda: len(home.understood()) == 5)
    assert home.read() == [f"crate {number} [[code]]" for number in range(5)]


@pytest.mark.usefixtures("quick")
async def test_none_is_asked_about_twice_though_it_is_fresh_and_in_the_backlog(home: ModelQueueHarness) -> None:
    async with home.asking() as asking:
        for memory in home.tells(20):
            asking.ask(HERE, memory)
        await until(lambda: len(home.understood()) == 20)
        await turns_of_the_loop()
        assert len(home.language.asked) == 20, "also while the records do not say yet that they are read"
        home.applied()
        await turns_of_the_loop()
    assert len(home.language.asked) == 20


@pytest.mark.usefixtures("quick")
async def test_none_is_asked_about_twice_when_both_queues_waited_for_the_model(home: ModelQueueHarness) -> None:
    home.language.become("down")
    [memory] = home.tells(1)
    async with home.asking() as asking:
        asking.ask(HERE, memory)
        await turns_of_the_loop()
        home.language.released.clear()
        home.language.become("ok")
        await turns_of_the_loop()
        home.language.released.set()
        await until(lambda: bool(home.understood()))
        await turns_of_the_loop()
    assert len(home.language.asked) == 1


@pytest.mark.usefixtures("quick")
async def test_one_that_is_under_way_is_not_begun_again(home: ModelQueueHarness) -> None:
    home.language.released.clear()
    home.tells(1)
    async with home.asking() as asking:
        await until(lambda: len(home.language.asked) == 1)
        for memory in home.memories.all():
            asking.ask(HERE, memory)
        await turns_of_the_loop()
    assert len(home.language.asked) == 1


async def test_backlog_is_rate_limited_and_fresh_turns_do_not_wait(
    home: ModelQueueHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    go_on = asyncio.Event()
    sleep = asyncio.sleep

    async def paced(seconds: float) -> None:
        if seconds == 0.25:
            pauses.append(seconds)
            await go_on.wait()
            go_on.clear()
        else:
            await sleep(0)

    backlog = home.tells(3)
    monkeypatch.setattr(asyncio, "sleep", paced)
    async with home.asking(per_second=4) as asking:
        for step in (1, 2, 3):
            async with asyncio.timeout(10):
                while len(home.understood()) < step:
                    await sleep(0.005)
            await sleep(0.02)
            assert (len(home.understood()), len(pauses)) == (step, step), "one for each pause"
            go_on.set()
        go_on.clear()
        fresh = home.tell("fresh [[code]]", 9)
        asking.ask(HERE, fresh)
        async with asyncio.timeout(10):
            while len(home.understood()) < 4:
                await sleep(0.005)
    assert home.understood()[-1].memory_id == fresh.memory_id
    assert len(backlog) == 3


@pytest.mark.usefixtures("quick")
async def test_while_the_worker_is_busy_the_backlog_waits_and_fresh_turns_do_not(home: ModelQueueHarness) -> None:
    old, fresh = home.tells(2)
    home.busy = True
    async with home.asking() as asking:
        asking.ask(HERE, fresh)
        await until(lambda: home.read() == [fresh.text])
        await turns_of_the_loop()
        assert home.read() == [fresh.text]
        home.busy = False
        await until(lambda: home.read() == sorted([old.text, fresh.text]))


async def test_one_that_was_read_or_forgotten_meanwhile_is_not_asked_about(home: ModelQueueHarness) -> None:
    read, gone = home.tells(2)
    done = read.model_copy(update={"reading": read.reading.model_copy(update={"status": "model"})})
    home.memories.put(HERE, done)
    home.memories.forget(HERE, gone.memory_id)
    home.words.remove(HERE, gone.memory_id)
    home.words.put(HERE, LexicalDocument(done))
    async with home.asking() as asking:
        asking.ask(HERE, read)
        asking.ask(HERE, gone)
        await turns_of_the_loop()
    assert home.language.asked == []


async def test_more_fresh_turns_than_may_wait_are_found_by_their_records(
    home: ModelQueueHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_model, "MAX_FRESH", 2)
    monkeypatch.setattr(asking_model, "PENDING_POLL_INTERVAL_S", 0.0)
    memories = home.tells(6)
    async with home.asking() as asking:
        for memory in memories:
            asking.ask(HERE, memory)
        assert len(asking._fresh) == 2
        await until(lambda: len(home.understood()) == 6)


@pytest.mark.usefixtures("quick")
async def test_a_text_that_came_back_is_asked_about_again(home: ModelQueueHarness) -> None:
    async with home.asking():
        for offset, text in enumerate(["violin", "cello", "violin"]):
            home.tell(text, offset, turn_id="t")
            await until(lambda: len(home.understood()) == offset + 1)  # noqa: B023
            home.applied()
    assert [memory.reading.status for memory in home.memories.all()] == ["model"]
