"""`UnderstandingQueue`: unavailable models, embedders and partitions, and unusable answers."""

import pytest

from schemas.models.language import Prompt
from tests.harnesses.model_queue import AT_ONCE, ModelQueueHarness, until, yield_to_loop
from tests.harnesses.worker import HERE


@pytest.mark.usefixtures("quick")
async def test_outage_delays_all_questions_which_are_then_asked_once(worker: ModelQueueHarness) -> None:
    worker.language.become("down")
    async with worker.asking() as queue:
        for memory in worker.say_pending(30):
            queue.ask(HERE, memory)
        await yield_to_loop()
        assert worker.language.asked == []
        assert worker.understood_events() == []
        worker.language.become("ok")
        await until(lambda: len(worker.understood_events()) == 30)
        await yield_to_loop()
    assert len(worker.language.asked) == 30


@pytest.mark.usefixtures("quick")
async def test_failed_call_is_repeated_with_the_backlog(worker: ModelQueueHarness) -> None:
    worker.language.released.clear()
    worker.say_pending(AT_ONCE)
    async with worker.asking():
        await until(lambda: len(worker.language.asked) == AT_ONCE)
        worker.language.become("down")
        worker.language.released.set()
        await yield_to_loop()
        assert worker.understood_events() == []
        worker.language.become("ok")
        await until(lambda: len(worker.understood_events()) == AT_ONCE)
    assert len(worker.language.asked) == 2 * AT_ONCE


@pytest.mark.usefixtures("quick")
async def test_unanswerable_turn_does_not_affect_others(worker: ModelQueueHarness) -> None:
    def answers(prompt: Prompt) -> dict[str, object]:
        if "crate 1" in prompt.user:
            raise KeyError("a defect")
        return {}

    worker.language.answers = answers
    worker.say_pending(1)
    worker.say("crate 1", 1, conversation_id="c2")
    worker.say("crate 2", 2, conversation_id="c3")
    async with worker.asking():
        await until(lambda: len(worker.understood_events()) == 2)
    assert worker.understood_texts() == ["crate 0 [[code]]", "crate 2"]


@pytest.mark.usefixtures("quick")
async def test_answer_without_general_embedder_is_requested_once(worker: ModelQueueHarness) -> None:
    worker.say_pending(1)
    worker.embedders.model("general").outage = True
    async with worker.asking():
        await until(lambda: bool(worker.understood_events()))
    [event] = worker.understood_events()
    assert event.profile == "default"
    assert event.interaction is None
    assert len(worker.language.asked) == 1


@pytest.mark.usefixtures("quick")
async def test_revoked_partition_is_skipped_until_it_returns(worker: ModelQueueHarness) -> None:
    [memory] = worker.say_pending(1)
    revoked = (HERE + 1) % 4
    worker.here = {revoked}
    async with worker.asking() as queue:
        queue.ask(revoked, memory)
        await yield_to_loop()
        assert worker.language.asked == []
        worker.here = {revoked, HERE}
        await until(lambda: bool(worker.understood_events()))
