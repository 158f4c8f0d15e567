"""`UnderstandingQueue`: which memories it asks a language model about, when and how often."""

import asyncio

import pytest

from agents.rules.index.lexical_document import LexicalDocument
from streams.flow.background import asking_model
from tests.harnesses.model_queue import AT_ONCE, ModelQueueHarness, until, yield_to_loop
from tests.harnesses.worker import HERE


async def test_fresh_turn_is_asked_about_and_published(worker: ModelQueueHarness) -> None:
    async with worker.asking() as queue:
        [memory] = worker.say_pending(1)
        queue.ask(HERE, memory)
        await until(lambda: bool(worker.understood_events()))
    [event] = worker.understood_events()
    assert event.found is not None
    assert event.memory_id == memory.memory_id
    assert event.found.mode == "code"
    assert event.profile == "default"
    assert [out.key for out in worker.publisher.sent] == [b"u1"]


async def test_concurrent_questions_are_limited(worker: ModelQueueHarness) -> None:
    worker.language.released.clear()
    async with worker.asking() as queue:
        for memory in worker.say_pending(10):
            queue.ask(HERE, memory)
        await until(lambda: len(worker.language.asked) == AT_ONCE)
        await yield_to_loop()
        assert len(worker.language.asked) == AT_ONCE
        worker.language.released.set()
        await until(lambda: len(worker.understood_events()) == 10)


@pytest.mark.usefixtures("quick")
async def test_pending_records_are_asked_about_without_a_call(worker: ModelQueueHarness) -> None:
    worker.say_pending(5)
    async with worker.asking():
        await until(lambda: len(worker.understood_events()) == 5)
    assert worker.understood_texts() == [f"crate {number} [[code]]" for number in range(5)]


@pytest.mark.usefixtures("quick")
async def test_turn_in_queue_and_backlog_is_asked_about_once(worker: ModelQueueHarness) -> None:
    async with worker.asking() as queue:
        for memory in worker.say_pending(20):
            queue.ask(HERE, memory)
        await until(lambda: len(worker.understood_events()) == 20)
        await yield_to_loop()
        assert len(worker.language.asked) == 20, "also before the records are updated"
        worker.apply_understood()
        await yield_to_loop()
    assert len(worker.language.asked) == 20


@pytest.mark.usefixtures("quick")
async def test_turn_in_both_queues_is_asked_once_after_an_outage(worker: ModelQueueHarness) -> None:
    worker.language.become("down")
    [memory] = worker.say_pending(1)
    async with worker.asking() as queue:
        queue.ask(HERE, memory)
        await yield_to_loop()
        worker.language.released.clear()
        worker.language.become("ok")
        await yield_to_loop()
        worker.language.released.set()
        await until(lambda: bool(worker.understood_events()))
        await yield_to_loop()
    assert len(worker.language.asked) == 1


@pytest.mark.usefixtures("quick")
async def test_running_question_is_not_repeated(worker: ModelQueueHarness) -> None:
    worker.language.released.clear()
    worker.say_pending(1)
    async with worker.asking() as queue:
        await until(lambda: len(worker.language.asked) == 1)
        for memory in worker.memories.all():
            queue.ask(HERE, memory)
        await yield_to_loop()
    assert len(worker.language.asked) == 1


async def test_backlog_is_rate_limited_and_fresh_turns_do_not_wait(
    worker: ModelQueueHarness, monkeypatch: pytest.MonkeyPatch
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

    backlog = worker.say_pending(3)
    monkeypatch.setattr(asyncio, "sleep", paced)
    async with worker.asking(per_second=4) as queue:
        for step in (1, 2, 3):
            async with asyncio.timeout(10):
                while len(worker.understood_events()) < step:
                    await sleep(0.005)
            await sleep(0.02)
            assert len(worker.understood_events()) == step, "one poll for each pause"
            assert len(pauses) == step, "one poll for each pause"
            go_on.set()
        go_on.clear()
        fresh = worker.say("fresh [[code]]", 9)
        queue.ask(HERE, fresh)
        async with asyncio.timeout(10):
            while len(worker.understood_events()) < 4:
                await sleep(0.005)
    assert worker.understood_events()[-1].memory_id == fresh.memory_id
    assert len(backlog) == 3


@pytest.mark.usefixtures("quick")
async def test_busy_worker_delays_the_backlog_but_not_fresh_turns(worker: ModelQueueHarness) -> None:
    old, fresh = worker.say_pending(2)
    worker.busy = True
    async with worker.asking() as queue:
        queue.ask(HERE, fresh)
        await until(lambda: worker.understood_texts() == [fresh.text])
        await yield_to_loop()
        assert worker.understood_texts() == [fresh.text]
        worker.busy = False
        await until(lambda: worker.understood_texts() == sorted([old.text, fresh.text]))


async def test_understood_or_forgotten_turn_is_not_asked_about(worker: ModelQueueHarness) -> None:
    read, forgotten = worker.say_pending(2)
    done = read.model_copy(update={"reading": read.reading.model_copy(update={"status": "model"})})
    worker.memories.put(HERE, done)
    worker.memories.forget(HERE, forgotten.memory_id)
    worker.words.remove(HERE, forgotten.memory_id)
    worker.words.put(HERE, LexicalDocument(done))
    async with worker.asking() as queue:
        queue.ask(HERE, read)
        queue.ask(HERE, forgotten)
        await yield_to_loop()
    assert worker.language.asked == []


async def test_overflowing_fresh_turns_are_found_in_the_backlog(
    worker: ModelQueueHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_model, "MAX_FRESH", 2)
    monkeypatch.setattr(asking_model, "PENDING_POLL_INTERVAL_S", 0.0)
    memories = worker.say_pending(6)
    async with worker.asking() as queue:
        for memory in memories:
            queue.ask(HERE, memory)
        assert len(queue._fresh) == 2
        await until(lambda: len(worker.understood_events()) == 6)


@pytest.mark.usefixtures("quick")
async def test_restored_text_is_asked_about_again(worker: ModelQueueHarness) -> None:
    async with worker.asking():
        for offset, text in enumerate(["violin", "cello", "violin"]):
            worker.say(text, offset, turn_id="t")
            await until(lambda: len(worker.understood_events()) == offset + 1)  # noqa: B023
            worker.apply_understood()
    assert [memory.reading.status for memory in worker.memories.all()] == ["model"]


async def test_turn_of_a_mode_that_was_just_made_private_is_not_asked_about(
    worker: ModelQueueHarness, quick: None
) -> None:
    """Its record does not have the filter yet: the change is in flight."""
    worker.say_pending(1)
    worker.declare("general", "general", private=True)
    async with worker.asking():
        await yield_to_loop()
    assert worker.language.asked == []
