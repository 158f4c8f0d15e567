"""What becomes of a turn whose model, embedder or partition is away, or whose answer can't be used."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from schemas.models.language import Prompt
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


@pytest.mark.usefixtures("quick")
async def test_while_the_model_is_down_nothing_is_asked_and_then_everything_once(home: ModelQueueHarness) -> None:
    home.language.become("down")
    async with home.asking() as asking:
        for memory in home.tells(30):
            asking.ask(HERE, memory)
        await turns_of_the_loop()
        assert (home.language.asked, home.understood()) == ([], [])
        home.language.become("ok")
        await until(lambda: len(home.understood()) == 30)
        await turns_of_the_loop()
    assert len(home.language.asked) == 30


@pytest.mark.usefixtures("quick")
async def test_one_whose_call_failed_comes_again_with_the_backlog(home: ModelQueueHarness) -> None:
    home.language.released.clear()
    home.tells(AT_ONCE)
    async with home.asking():
        await until(lambda: len(home.language.asked) == AT_ONCE)
        home.language.become("down")
        home.language.released.set()
        await turns_of_the_loop()
        assert home.understood() == []
        home.language.become("ok")
        await until(lambda: len(home.understood()) == AT_ONCE)
    assert len(home.language.asked) == 2 * AT_ONCE


@pytest.mark.usefixtures("quick")
async def test_one_that_no_answer_is_made_of_costs_the_others_nothing(home: ModelQueueHarness) -> None:
    def answers(prompt: Prompt) -> dict[str, object]:
        if "crate 1" in prompt.user:
            raise KeyError("a defect")
        return {}

    home.language.answers = answers
    home.tells(1)
    home.tell("crate 1", 1, conversation_id="c2")
    home.tell("crate 2", 2, conversation_id="c3")
    async with home.asking():
        await until(lambda: len(home.understood()) == 2)
    assert home.read() == ["crate 0 [[code]]", "crate 2"]


@pytest.mark.usefixtures("quick")
async def test_answer_without_the_general_embedder_is_kept_and_paid_once(home: ModelQueueHarness) -> None:
    home.tells(1)
    home.embedders.model("general").outage = True
    async with home.asking():
        await until(lambda: bool(home.understood()))
    [event] = home.understood()
    assert (event.profile, event.interaction, len(home.language.asked)) == ("default", None, 1)


@pytest.mark.usefixtures("quick")
async def test_revoked_partition_is_skipped_and_asked_again_on_return(home: ModelQueueHarness) -> None:
    [memory] = home.tells(1)
    gone = (HERE + 1) % 4
    home.here = {gone}
    async with home.asking() as asking:
        asking.ask(gone, memory)
        await turns_of_the_loop()
        assert home.language.asked == []
        home.here = {gone, HERE}
        await until(lambda: bool(home.understood()))
