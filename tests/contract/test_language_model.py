"""What every language model does: the fake, and the adapter over a real HTTP server."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Protocol

import pytest
from prometheus_client import CollectorRegistry

from agents.ports.models import LanguageModel
from schemas.failures import Unavailable
from schemas.models.language import Chat, OnText, Profile, Profiles, Prompt, Unanswerable
from schemas.state.understanding import Understanding
from streams.adapters.language.endpoint import BreakerLimits, EndpointDependencies
from streams.adapters.language.litellm_models import LiteLLMModels
from streams.observability.metrics import ModelMeters
from tests.fakes.language_model import FakeLanguageModel
from tests.fakes.model_server import ModelServer

STEP, ROLE = "understand.turn", "understand"
PROMPT = Prompt(system="Describe the turn.", user="Deploying today [[code]].", version="understand-1")
SHORT_RESTS = BreakerLimits(failures=1, initial_open_s=0.01, max_open_s=0.02)

Behaviour = Literal["ok", "down", "wrong"]


class Controlled(Protocol):
    def become(self, behaviour: Behaviour) -> None: ...

    def say(self, text: str) -> None:
        """Answer the next chat with this text."""

    def break_off(self, text: str) -> None:
        """Begin the next answer, and do not end it."""


class ControlledServer:
    def __init__(self, server: ModelServer) -> None:
        self._server = server

    def become(self, behaviour: Behaviour) -> None:
        if behaviour == "down":
            self._server.become(500)
        else:
            self._server.become("ok" if behaviour == "ok" else "garbage")

    def say(self, text: str) -> None:
        self._server.texts.append(text)

    def break_off(self, text: str) -> None:
        self._server.texts.append(text)
        self._server.next("break")


@dataclass(frozen=True)
class ModelUnderTest:
    """A language model under test, and the control of its provider."""

    model: LanguageModel
    provider: Controlled


def profiles(server: ModelServer) -> Profiles:
    return Profiles({"default": Profile(model="openai/any", api_base=server.url, retries=0, timeout_s=10)})


def adapter(profiles: Profiles) -> LiteLLMModels:
    return LiteLLMModels(profiles, ModelMeters(CollectorRegistry()), EndpointDependencies(breaker_limits=SHORT_RESTS))


@pytest.fixture(params=["fake", "litellm"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[ModelUnderTest]:
    if request.param == "fake":
        fake = FakeLanguageModel()
        yield ModelUnderTest(fake, fake)
        return
    async with ModelServer() as server:
        model = adapter(profiles(server))
        yield ModelUnderTest(model, ControlledServer(server))
        await model.close()


@pytest.fixture(params=["fake", "litellm"])
def without_profiles(request: pytest.FixtureRequest) -> LanguageModel:
    return FakeLanguageModel(profiles=Profiles()) if request.param == "fake" else adapter(Profiles())


async def test_answer_has_the_requested_type(world: ModelUnderTest) -> None:
    answered = await world.model.ask(STEP, ROLE, PROMPT, Understanding)
    assert answered.answer == Understanding(mode="code")


async def test_answer_names_its_profile_prompt_and_token_counts(world: ModelUnderTest) -> None:
    answered = await world.model.ask(STEP, ROLE, PROMPT, Understanding)
    assert answered.profile == "default"
    assert answered.prompt == "understand-1"
    assert answered.repaired is False
    assert answered.tokens_in > 0
    assert answered.tokens_out > 0


async def test_questions_run_concurrently(world: ModelUnderTest) -> None:
    prompts = [Prompt("", f"[[mode-{number}]]", "v") for number in range(20)]
    answers = await asyncio.gather(*(world.model.ask(STEP, ROLE, prompt, Understanding) for prompt in prompts))
    assert [answered.answer.mode for answered in answers] == [f"mode-{number}" for number in range(20)]


async def test_model_during_an_outage_is_unavailable(world: ModelUnderTest) -> None:
    world.provider.become("down")
    with pytest.raises(Unavailable):
        await world.model.ask(STEP, ROLE, PROMPT, Understanding)
    assert not world.model.available(STEP, ROLE)


async def test_nonsense_answer_is_unanswerable_and_not_unavailable(world: ModelUnderTest) -> None:
    world.provider.become("wrong")
    with pytest.raises(Unanswerable):
        await world.model.ask(STEP, ROLE, PROMPT, Understanding)
    assert world.model.available(STEP, ROLE)


async def test_model_answers_again_after_an_outage(world: ModelUnderTest) -> None:
    world.provider.become("down")
    with pytest.raises(Unavailable):
        await world.model.ask(STEP, ROLE, PROMPT, Understanding)
    world.provider.become("ok")
    await world.model.until_available(STEP, ROLE)
    assert (await world.model.ask(STEP, ROLE, PROMPT, Understanding)).answer.mode == "code"
    assert world.model.available(STEP, ROLE)


async def test_available_model_needs_no_wait(world: ModelUnderTest) -> None:
    await world.model.until_available(STEP, ROLE)
    assert world.model.available(STEP, ROLE)


async def test_status_counts_calls_and_keeps_the_last_error(world: ModelUnderTest) -> None:
    await world.model.ask(STEP, ROLE, PROMPT, Understanding)
    before = world.model.status()["default"]
    world.provider.become("down")
    with pytest.raises(Unavailable):
        await world.model.ask(STEP, ROLE, PROMPT, Understanding)
    after = world.model.status()["default"]
    assert before["state"] == "closed"
    assert before["calls"] == 1
    assert before["failures"] == 0
    assert before["last_error"] is None
    assert after["calls"] == 2
    assert after["failures"] == 1
    assert after["state"] != "closed"
    assert after["last_error"]


async def test_model_stays_usable_after_a_cancelled_question(world: ModelUnderTest) -> None:
    asked = asyncio.create_task(world.model.ask(STEP, ROLE, PROMPT, Understanding))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    assert (await world.model.ask(STEP, ROLE, PROMPT, Understanding)).answer.mode == "code"


async def test_sound_is_heard_with_its_times(world: ModelUnderTest) -> None:
    heard = await world.model.transcribe("transcribe", "transcribe", b"RIFF", "a.wav")
    assert [part.text for part in heard] == ["Under", "the", "pot."]
    assert [(part.start_s, part.end_s) for part in heard] == [(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]


@pytest.mark.parametrize(("behaviour", "error"), [("down", Unavailable), ("wrong", Unanswerable)])
async def test_sound_without_an_answer(world: ModelUnderTest, behaviour: Behaviour, error: type[Exception]) -> None:
    world.provider.become(behaviour)
    with pytest.raises(error):
        await world.model.transcribe("transcribe", "transcribe", b"RIFF", "a.wav")


async def test_default_profile_has_no_other_role(world: ModelUnderTest) -> None:
    assert not world.model.has_role("transcribe")
    assert world.model.has_role("default")


async def test_questions_without_profiles_are_unavailable(without_profiles: LanguageModel) -> None:
    assert not without_profiles.available(STEP, ROLE)
    assert without_profiles.status() == {}
    with pytest.raises(Unavailable, match="no language model is configured"):
        await without_profiles.ask(STEP, ROLE, PROMPT, Understanding)


async def test_without_profiles_nothing_is_ever_worth_waiting_for(without_profiles: LanguageModel) -> None:
    waiting = asyncio.create_task(without_profiles.until_available(STEP, ROLE))
    done, _ = await asyncio.wait({waiting}, timeout=0.01)
    waiting.cancel()
    assert not done


async def test_profile_that_there_is_not_is_replaced_by_no_other_one(world: ModelUnderTest) -> None:
    with pytest.raises(Unavailable):
        await world.model.ask(STEP, ROLE, PROMPT, Understanding, "absent")
    assert not world.model.available(STEP, ROLE, "absent")
    assert (await world.model.ask(STEP, ROLE, PROMPT, Understanding, "default")).profile == "default"


CHAT = Chat([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is the key?"}])


async def test_chat_is_continued_in_the_models_own_words(world: ModelUnderTest) -> None:
    world.provider.say("Under the pot.")
    answered = await world.model.continue_chat(STEP, "answer", CHAT)
    assert answered.text == "Under the pot."
    assert answered.profile == "default"
    assert answered.finish_reason == "stop"
    assert answered.tokens_out > 0


async def test_pieces_of_an_answer_are_its_text(world: ModelUnderTest) -> None:
    world.provider.say("Under the pot.")
    pieces: list[str] = []
    answered = await world.model.continue_chat(STEP, "answer", CHAT, on_text=pieces.append)
    assert len(pieces) > 1
    assert "".join(pieces) == answered.text == "Under the pot."
    assert answered.tokens_out > 0


@pytest.mark.parametrize("on_text", [None, lambda _: None])
async def test_chat_during_an_outage_is_unavailable(world: ModelUnderTest, on_text: OnText | None) -> None:
    world.provider.become("down")
    with pytest.raises(Unavailable):
        await world.model.continue_chat(STEP, "answer", CHAT, on_text=on_text)


@pytest.mark.parametrize("on_text", [None, lambda _: None])
async def test_answer_without_a_text_is_none(world: ModelUnderTest, on_text: OnText | None) -> None:
    world.provider.say("")
    with pytest.raises(Unanswerable):
        await world.model.continue_chat(STEP, "answer", CHAT, on_text=on_text)


async def test_answer_that_breaks_off_is_unavailable(world: ModelUnderTest) -> None:
    world.provider.break_off("Under the")
    pieces: list[str] = []
    with pytest.raises(Unavailable):
        await world.model.continue_chat(STEP, "answer", CHAT, on_text=pieces.append)
    assert "".join(pieces) == "Under the"
