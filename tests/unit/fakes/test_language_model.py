import asyncio

from schemas.models.language import Prompt
from schemas.state.understanding import Understanding
from tests.fakes.language_model import FakeLanguageModel

PROMPT = Prompt("", "first [[code]], then [[journal]]", "v1")


async def test_wait_ends_when_the_model_is_available() -> None:
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


async def test_fake_returns_the_configured_answer() -> None:
    model = FakeLanguageModel(lambda prompt: {"topic": prompt.version})
    assert (await model.ask("s", "r", PROMPT, Understanding)).answer == Understanding(topic="v1")


async def test_held_questions_are_answered_on_release() -> None:
    model = FakeLanguageModel()
    model.released.clear()
    asked = asyncio.create_task(model.ask("s", "r", PROMPT, Understanding))
    await asyncio.sleep(0)
    assert not asked.done()
    model.released.set()
    assert (await asked).profile == "default"
