import asyncio

from schemas.models.language import Prompt
from schemas.state.understanding import Understanding
from tests.fakes.language_model import FakeLanguageModel

PROMPT = Prompt("", "first [[code]], then [[journal]]", "v1")


async def test_it_is_waited_for_until_it_is_told_to_answer() -> None:
    model = FakeLanguageModel()
    model.become("down")
    waiting = asyncio.create_task(model.until_available("understand.turn", "understand"))
    await asyncio.sleep(0)
    assert not waiting.done()
    model.become("ok")
    await asyncio.wait_for(waiting, 5)


async def test_fake_model_chooses_the_last_marked_mode_and_keeps_the_prompt() -> None:
    model = FakeLanguageModel()
    assert (await model.ask("s", "r", PROMPT, Understanding)).answer.mode == "journal"
    assert model.asked == [PROMPT]


async def test_it_answers_what_the_test_gives() -> None:
    model = FakeLanguageModel(lambda prompt: {"topic": prompt.version})
    assert (await model.ask("s", "r", PROMPT, Understanding)).answer == Understanding(topic="v1")


async def test_questions_that_are_held_are_answered_when_they_are_released() -> None:
    model = FakeLanguageModel()
    model.released.clear()
    asked = asyncio.create_task(model.ask("s", "r", PROMPT, Understanding))
    await asyncio.sleep(0)
    assert not asked.done()
    model.released.set()
    assert (await asked).profile == "default"
