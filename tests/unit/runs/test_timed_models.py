"""Calls of language models are noted in the run that asks: what they cost, and why one failed."""

import asyncio

import pytest

from agents.ports.clock import RunTimer
from schemas.failures import Unavailable
from schemas.models.language import Prompt, Unanswerable
from schemas.state.understanding import Understanding
from streams.flow.runs.recorder import TimedModels
from tests.fakes.language_model import FakeLanguageModel

PROMPT = Prompt("system", "user", "understand-1")


async def ask(models: TimedModels) -> object:
    return await models.ask("understand.turn", "understand", PROMPT, Understanding)


async def test_an_answer_is_noted_with_its_tokens() -> None:
    models, timer = TimedModels(FakeLanguageModel(), "memorize.understand"), RunTimer()
    await ask(models)
    with timer:
        await ask(models)
    [call] = timer.models
    assert call.step == "memorize.understand"
    assert call.profile == "default"
    assert call.tokens_in == 1
    assert call.tokens_out == 1
    assert call.failure is None
    assert timer.began <= call.began <= call.ended


async def test_failures_are_noted_and_go_on() -> None:
    language, timer = FakeLanguageModel(), RunTimer()
    models = TimedModels(language, "memorize.understand")
    with timer:
        language.become("down")
        with pytest.raises(Unavailable):
            await ask(models)
        language.become("wrong")
        with pytest.raises(Unanswerable):
            await ask(models)
        language.become("ok")
        language.released.clear()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await ask(models)
    assert [call.failure for call in timer.models] == ["unavailable", "unanswerable", "timeout"]
