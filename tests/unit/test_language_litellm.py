"""The adapter over a real HTTP server that misbehaves in every way that was thought of."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from schemas.failures import Unavailable
from schemas.language import Answered, Profile, Profiles, Prompt, Unanswerable
from schemas.understanding import Understanding
from streams.adapters.language.breaker import BreakerLimits
from streams.adapters.language.endpoint import Outside
from streams.adapters.language.litellm_models import LiteLLMModels
from streams.watching.model_metrics import ModelMeters
from tests.model_server import GARBAGE, Behaviour, ModelServer

PROMPT = Prompt(system="Describe the turn.", user="Deploying today [[code]].", version="understand-1")
KEY = "a-key-that-nobody-may-read"
AMPLE = BreakerLimits(failures=100, timeouts=100)
ROOT = Path(__file__).parents[2]


@dataclass
class Rig:
    """A server, and what makes models that ask it. `pauses` are the seconds that were waited between attempts."""

    server: ModelServer
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    pauses: list[float] = field(default_factory=list)
    made: list[LiteLLMModels] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.meters = ModelMeters(self.registry)

    def models(
        self, limits: BreakerLimits = AMPLE, environment: dict[str, str] | None = None, **fields: Any
    ) -> LiteLLMModels:
        settings = {"model": "openai/any", "api_base": self.server.url, "api_key_env": "ANY_KEY", "retries": 0}
        profile = Profile.model_validate(settings | fields)
        given = {"ANY_KEY": KEY} if environment is None else environment
        outside = Outside(environment=given, sleep=self._pause, chance=lambda: 1.0, limits=limits)
        self.made.append(LiteLLMModels(Profiles({"default": profile}), self.meters, outside))
        return self.made[-1]

    def number(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"modestream_model_{name}", {"profile": "default"} | labels)

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with ModelServer() as server:
        rig = Rig(server)
        yield rig
        for models in rig.made:
            await models.close()


async def ask(models: LiteLLMModels) -> Answered[Understanding]:
    return await models.ask("understand.turn", "understand", PROMPT, Understanding)


async def failure(models: LiteLLMModels) -> Exception:
    with pytest.raises((Unavailable, Unanswerable)) as failed:
        await ask(models)
    return failed.value


@pytest.mark.parametrize("way", ["json_schema", "json_object", "prompt"])
async def test_each_way_to_ask_for_an_object_gets_one(rig: Rig, way: str) -> None:
    answered = await ask(rig.models(structured_output=way))
    assert answered.answer.mode == "code"
    sent = rig.server.questions[0].body.get("response_format", {}).get("type")
    assert sent == (None if way == "prompt" else way)


async def test_a_request_carries_what_the_profile_says(rig: Rig) -> None:
    await ask(rig.models(temperature=0.3, max_tokens=77))
    question = rig.server.questions[0]
    assert (question.body["model"], question.body["temperature"], question.body["max_tokens"]) == ("any", 0.3, 77)
    assert question.messages == [PROMPT.system, PROMPT.user]
    assert question.authorization == f"Bearer {KEY}"


async def test_a_temperature_of_none_is_left_to_the_model(rig: Rig) -> None:
    await ask(rig.models(temperature=None))
    assert "temperature" not in rig.server.questions[0].body


async def test_an_own_server_never_gets_the_key_that_is_meant_for_openai(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    await ask(rig.models(api_key_env=None))
    assert KEY not in rig.server.questions[0].authorization


@pytest.mark.parametrize("behaviour", ["hang", "slow"])
async def test_a_model_that_does_not_answer_in_time_is_unavailable(rig: Rig, behaviour: Behaviour) -> None:
    rig.server.become(behaviour)
    problem = await failure(rig.models(timeout_s=0.1))
    assert isinstance(problem, Unavailable)
    assert "did not answer within 0.1 s" in str(problem)
    assert rig.number("calls_total", outcome="timeout") == 1


@pytest.mark.parametrize("behaviour", ["hang", "close", "page", 408, 409, 429, 500, 502, 503])
async def test_what_may_pass_is_tried_again_as_often_as_the_profile_says(rig: Rig, behaviour: Behaviour) -> None:
    rig.server.become(behaviour)
    assert isinstance(await failure(rig.models(retries=2, timeout_s=0.1)), Unavailable)
    assert len(rig.server.questions) == 3
    assert len(rig.pauses) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_what_does_not_pass_is_asked_once(rig: Rig, status: int) -> None:
    rig.server.become(status)
    assert isinstance(await failure(rig.models(retries=2)), Unavailable)
    assert len(rig.server.questions) == 1


async def test_an_attempt_that_succeeds_ends_the_retries(rig: Rig) -> None:
    rig.server.next(500, "close")
    assert (await ask(rig.models(retries=5))).answer.mode == "code"
    assert len(rig.server.questions) == 3


async def test_a_rate_limit_s_own_pause_is_honoured(rig: Rig) -> None:
    rig.server.headers = {"Retry-After": "7"}
    rig.server.next(429)
    await ask(rig.models(retries=1))
    assert rig.pauses == [7.5]


async def test_a_rate_limit_with_a_long_pause_is_not_waited_for_but_rested_out(rig: Rig) -> None:
    rig.server.headers = {"Retry-After": "60"}
    rig.server.become(429)
    models = rig.models(retries=5)
    await failure(models)
    assert len(rig.server.questions) == 1
    assert not models.available("understand.turn", "understand")


async def test_an_account_without_credit_is_not_asked_again(rig: Rig) -> None:
    rig.server.error = "You exceeded your quota (insufficient_quota)"
    rig.server.become(429)
    assert "no credit" in str(await failure(rig.models(retries=5)))
    assert len(rig.server.questions) == 1


async def test_a_request_that_is_refused_though_others_are_answered_is_unanswerable(rig: Rig) -> None:
    models = rig.models()
    await ask(models)
    rig.server.next(400)
    assert isinstance(await failure(models), Unanswerable)


async def test_a_missing_key_is_said_and_nothing_is_sent(rig: Rig) -> None:
    models = rig.models(environment={})
    problem = await failure(models)
    assert isinstance(problem, Unavailable)
    assert "ANY_KEY, which is not set" in str(problem)
    assert not rig.server.questions
    assert not models.available("understand.turn", "understand")
    assert models.standing()["default"]["last_error"] == str(problem)


@pytest.mark.parametrize("behaviour", ["garbage", "cut", "empty"])
async def test_an_invalid_answer_is_repaired_by_a_second_one(rig: Rig, behaviour: Behaviour) -> None:
    rig.server.next(behaviour)
    answered = await ask(rig.models())
    assert (answered.answer.mode, answered.repaired) == ("code", True)
    assert (answered.tokens_in, answered.tokens_out) == (22, 14)
    assert rig.number("answers_total", outcome="repaired") == 1


async def test_the_repair_shows_the_model_its_answer_and_the_error(rig: Rig) -> None:
    rig.server.texts.append('{"interaction_confidence": 95}')
    await ask(rig.models())
    repair = rig.server.questions[1].messages[-1]
    assert r"{\"interaction_confidence\": 95}" in repair
    assert "interaction_confidence: Input should be less than or equal to 1" in repair
    assert repair.endswith(PROMPT.user)


async def test_an_answer_that_was_cut_off_is_told_so(rig: Rig) -> None:
    rig.server.next("cut")
    await ask(rig.models(max_tokens=50))
    assert "cut off at 50 tokens" in rig.server.questions[1].messages[-1]


@pytest.mark.parametrize("text", [GARBAGE, '{"mode": ["code"]}', '{"items": "none"}', "null", "[]", '"code"'])
async def test_two_invalid_answers_are_unanswerable(rig: Rig, text: str) -> None:
    rig.server.texts.extend([text, text])
    models = rig.models()
    assert isinstance(await failure(models), Unanswerable)
    assert len(rig.server.questions) == 2
    assert models.standing()["default"]["failures"] == 1
    assert rig.number("answers_total", outcome="unanswerable") == 1


async def test_an_answer_that_a_filter_stopped_is_not_asked_for_again(rig: Rig) -> None:
    rig.server.become("refuse")
    assert isinstance(await failure(rig.models()), Unanswerable)
    assert len(rig.server.questions) == 1


async def test_an_outage_during_the_repair_is_unavailable(rig: Rig) -> None:
    rig.server.next("garbage", 500)
    assert isinstance(await failure(rig.models()), Unavailable)


async def test_five_failures_open_the_breaker_and_then_nothing_is_sent(rig: Rig) -> None:
    rig.server.become(500)
    models = rig.models(BreakerLimits())
    for _ in range(5):
        await failure(models)
    assert "rests" in str(await failure(models))
    assert len(rig.server.questions) == 5
    assert rig.number("breaker") == 2


async def test_an_open_breaker_ends_the_retries_of_a_question(rig: Rig) -> None:
    rig.server.become(500)
    assert isinstance(await failure(rig.models(BreakerLimits(failures=2), retries=9)), Unavailable)
    assert len(rig.server.questions) == 2


async def test_three_timeouts_open_the_breaker(rig: Rig) -> None:
    rig.server.become("hang")
    models = rig.models(BreakerLimits(), timeout_s=0.05)
    for _ in range(3):
        await failure(models)
    assert models.standing()["default"]["state"] == "open"


async def test_a_probe_that_is_answered_closes_the_breaker(rig: Rig) -> None:
    rig.server.become(500)
    models = rig.models(BreakerLimits(failures=1, first_rest_s=0.01))
    await failure(models)
    rig.server.become("ok")
    await models.until_available("understand.turn", "understand")
    assert models.standing()["default"]["state"] == "half_open"
    await ask(models)
    assert models.standing()["default"]["state"] == "closed"
    assert rig.number("breaker") == 0


async def test_of_many_questions_after_a_rest_one_probes(rig: Rig) -> None:
    rig.server.become(500)
    models = rig.models(BreakerLimits(failures=1, first_rest_s=0.01))
    await failure(models)
    await models.until_available("understand.turn", "understand")
    rig.server.become("hang")
    probe = asyncio.create_task(ask(models))
    await rig.server.until_asked(2)
    assert isinstance(await failure(models), Unavailable)
    assert len(rig.server.questions) == 2
    probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)
    assert models.available("understand.turn", "understand")


async def test_no_more_requests_are_under_way_than_the_profile_admits(rig: Rig) -> None:
    models = rig.models(max_concurrency=3)
    rig.server.become("wait")
    asked = [asyncio.create_task(ask(models)) for _ in range(20)]
    await rig.server.until_asked(3)
    rig.server.next("ok")
    await ask(rig.models())
    assert len(rig.server.questions) == 4
    rig.server.become("ok")
    await asyncio.gather(*asked)
    assert len(rig.server.questions) == 21


async def test_tokens_and_cost_are_counted_by_profile(rig: Rig) -> None:
    models = rig.models(input_cost_per_token=0.5, output_cost_per_token=0.25)
    assert (await ask(models)).cost_usd == 11 * 0.5 + 7 * 0.25
    assert rig.number("tokens_total", direction="in") == 11
    assert rig.number("tokens_total", direction="out") == 7
    assert rig.number("cost_usd_total") == 7.25
    assert rig.number("calls_total", outcome="answered") == 1
    assert rig.number("seconds_count") == 1


async def test_a_model_that_litellm_knows_has_its_price(rig: Rig) -> None:
    cost = (await ask(rig.models(model="openai/gpt-4o-mini"))).cost_usd
    assert cost is not None
    assert 0 < cost < 0.001


async def test_a_model_without_a_known_price_has_no_cost(rig: Rig) -> None:
    assert (await ask(rig.models())).cost_usd is None


@pytest.mark.parametrize("behaviour", [400, 401, 429, 500])
async def test_no_secret_is_in_an_error_its_causes_the_standing_or_a_log(
    rig: Rig, behaviour: Behaviour, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    rig.server.error = f"{KEY} is not a key, nor is sk-proj-1234567890"
    rig.server.become(behaviour)
    models = rig.models()
    with caplog.at_level(logging.DEBUG):
        problem: BaseException | None = await failure(models)
    seen = [caplog.text, *capfd.readouterr(), str(models.standing())]
    while problem is not None:
        seen += [str(problem), repr(problem)]
        problem = problem.__cause__ or problem.__context__
    assert not [text for text in seen if KEY in text or "1234567890" in text]


async def test_the_text_of_a_turn_is_in_no_log(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    models = rig.models()
    with caplog.at_level(logging.DEBUG):
        await ask(models)
        rig.server.become(500)
        await failure(models)
    assert "Deploying" not in caplog.text


async def test_nothing_is_printed(rig: Rig, capfd: pytest.CaptureFixture[str]) -> None:
    rig.server.become(500)
    await failure(rig.models())
    assert capfd.readouterr() == ("", "")


def run_python(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env={"PYTHONPATH": str(ROOT)}, capture_output=True, check=True
    )
    return done.stdout.decode()


def test_litellm_is_not_loaded_before_the_first_question(tmp_path: Path) -> None:
    program = "import sys, streams.adapters.language.litellm_models; print('litellm' in sys.modules)"
    assert run_python(program, tmp_path).strip() == "False"


def test_loading_litellm_reads_no_settings_file_uses_no_network_and_burdens_no_garbage_collection(
    tmp_path: Path,
) -> None:
    (tmp_path / ".env").write_text("FROM_A_FILE=1\n")
    program = """
import asyncio, gc, os, socket
def refuse(*_, **__): raise AssertionError("no network while loading")
socket.create_connection = socket.getaddrinfo = socket.socket.connect = refuse
from streams.adapters.language.litellm_library import LiteLLMLibrary
asyncio.run(LiteLLMLibrary().load())
print(os.environ.get("FROM_A_FILE"), gc.isenabled(), len(gc.get_objects()) < gc.get_freeze_count() / 10)
"""
    assert run_python(program, tmp_path).strip() == "None True True"
