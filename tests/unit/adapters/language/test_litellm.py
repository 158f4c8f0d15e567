"""The adapter over a real HTTP server: requests, counts, and secrets that never leave."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.models.language import Chat
from streams.adapters.language.faults import MAX_ANSWER_BYTES
from tests.builders.files import sound
from tests.fakes.model_server import Behaviour, ModelServer
from tests.harnesses.language_models import KEY, PROMPT, LanguageModelHarness, ask, failure

ROOT = Path(__file__).parents[4]

SOCKET_BUFFERS = 16 * 1024 * 1024
"""More than the two ends of a connection hold."""


@pytest.mark.parametrize("way", ["json_schema", "json_object", "prompt"])
async def test_every_way_of_structured_output_gets_an_answer(rig: LanguageModelHarness, way: str) -> None:
    answered = await ask(rig.models(structured_output=way))
    assert answered.answer.mode == "code"
    sent = rig.server.questions[0].body.get("response_format", {}).get("type")
    assert sent == (None if way == "prompt" else way)


async def test_request_has_the_arguments_of_the_profile(rig: LanguageModelHarness) -> None:
    await ask(rig.models(temperature=0.3, max_tokens=77))
    question = rig.server.questions[0]
    assert question.body["model"] == "any"
    assert question.body["temperature"] == 0.3
    assert question.body["max_tokens"] == 77
    assert question.messages == [PROMPT.system, PROMPT.user]
    assert question.authorization == f"Bearer {KEY}"


async def test_an_image_arrives_as_it_was_sent(rig: LanguageModelHarness) -> None:
    content = [
        {"type": "text", "text": "Describe it."},
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AA=="}},
    ]
    rig.server.texts.append("A pot.")
    answer = await rig.models().continue_chat("caption", "caption", Chat([{"role": "user", "content": content}]))
    assert answer.text == "A pot."
    assert rig.server.questions[0].body["messages"] == [{"role": "user", "content": content}]


@pytest.mark.parametrize(
    ("model", "expected"), [("openai/whisper-1", "verbose_json"), ("openai/gpt-4o-transcribe", "json")]
)
async def test_times_are_asked_of_models_that_have_them(rig: LanguageModelHarness, model: str, expected: str) -> None:
    await rig.models(model=model).transcribe("transcribe", "transcribe", b"RIFF", "a.wav")
    assert rig.server.sounds == [("a.wav", b"RIFF", expected)]


async def test_no_sound_is_opened_in_this_process(rig: LanguageModelHarness) -> None:
    await rig.models().transcribe("transcribe", "transcribe", sound(), "a.wav")
    litellm = sys.modules["litellm.main"]
    assert litellm.calculate_request_duration(sound()) is None


async def test_a_temperature_of_none_is_left_to_the_model(rig: LanguageModelHarness) -> None:
    await ask(rig.models(temperature=None))
    assert "temperature" not in rig.server.questions[0].body


async def test_own_server_never_gets_the_key_for_openai(
    rig: LanguageModelHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    await ask(rig.models(api_key_env=None))
    assert KEY not in rig.server.questions[0].authorization


@pytest.mark.parametrize("model", ["openai/any", "hosted_vllm/any"])
async def test_an_endless_answer_is_read_up_to_its_limit(rig: LanguageModelHarness, model: str) -> None:
    rig.server.become("endless")
    problem = await failure(rig.models(model=model, timeout_s=60))
    assert f"more than {MAX_ANSWER_BYTES} bytes" in str(problem)
    assert rig.server.sent_bytes < MAX_ANSWER_BYTES + SOCKET_BUFFERS


async def test_a_packed_answer_is_not_unpacked(rig: LanguageModelHarness) -> None:
    rig.server.become("bomb")
    assert "packed" in str(await failure(rig.models()))


@pytest.mark.parametrize("model", ["openai/any", "hosted_vllm/any"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(rig: LanguageModelHarness, model: str, status: int) -> None:
    async with ModelServer() as elsewhere:
        rig.server.headers = {"Location": f"{elsewhere.url}/chat/completions"}
        rig.server.become(status)
        problem = await failure(rig.models(model=model))
        assert elsewhere.questions == []
    assert f"({status})" in str(problem)


async def test_tokens_and_cost_are_counted_by_profile(rig: LanguageModelHarness) -> None:
    models = rig.models(input_cost_per_token=0.5, output_cost_per_token=0.25)
    assert (await ask(models)).cost_usd == 11 * 0.5 + 7 * 0.25
    assert rig.number("tokens_total", direction="in") == 11
    assert rig.number("tokens_total", direction="out") == 7
    assert rig.number("cost_usd_total") == 7.25
    assert rig.number("calls_total", outcome="answered") == 1
    assert rig.number("seconds_count") == 1


async def test_status_has_the_tokens_and_the_cost_since_the_start(rig: LanguageModelHarness) -> None:
    models = rig.models(input_cost_per_token=0.5, output_cost_per_token=0.25)
    for _ in range(2):
        await ask(models)
    status = models.status()["default"]
    assert status["tokens_in"] == 22
    assert status["tokens_out"] == 14
    assert status["cost_usd"] == 14.5


async def test_a_model_that_litellm_knows_has_its_price(rig: LanguageModelHarness) -> None:
    cost = (await ask(rig.models(model="openai/gpt-4o-mini"))).cost_usd
    assert cost is not None
    assert 0 < cost < 0.001


async def test_a_model_without_a_known_price_has_no_cost(rig: LanguageModelHarness) -> None:
    assert (await ask(rig.models())).cost_usd is None


@pytest.mark.parametrize("behaviour", [400, 401, 429, 500])
async def test_no_secret_is_in_errors_status_or_logs(
    rig: LanguageModelHarness, behaviour: Behaviour, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    rig.server.error = f"{KEY} is not a key, nor is sk-proj-1234567890"
    rig.server.become(behaviour)
    models = rig.models()
    with caplog.at_level(logging.DEBUG):
        problem: BaseException | None = await failure(models)
    seen = [caplog.text, *capfd.readouterr(), str(models.status())]
    while problem is not None:
        seen += [str(problem), repr(problem)]
        problem = problem.__cause__ or problem.__context__
    assert not [text for text in seen if KEY in text or "1234567890" in text]


async def test_the_text_of_a_turn_is_in_no_log(rig: LanguageModelHarness, caplog: pytest.LogCaptureFixture) -> None:
    models = rig.models()
    with caplog.at_level(logging.DEBUG):
        await ask(models)
        rig.server.become(500)
        await failure(models)
    assert "Deploying" not in caplog.text


async def test_nothing_is_printed(rig: LanguageModelHarness, capfd: pytest.CaptureFixture[str]) -> None:
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


def test_loading_litellm_has_no_side_effects(tmp_path: Path) -> None:
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
