"""The adapter over a misbehaving server: retries, repairs and errors."""

import pytest

from schemas.failures import Unavailable
from schemas.models.language import Unanswerable
from tests.fakes.model_server import GARBAGE, Behaviour
from tests.harnesses.language_models import PROMPT, LanguageModelHarness, ask, failure


@pytest.mark.parametrize("behaviour", ["hang", "slow"])
async def test_timeout_is_unavailable(rig: LanguageModelHarness, behaviour: Behaviour) -> None:
    rig.server.become(behaviour)
    problem = await failure(rig.models(timeout_s=0.5))
    assert isinstance(problem, Unavailable)
    assert "did not answer within 0.5 s" in str(problem)
    assert rig.number("calls_total", outcome="timeout") == 1


@pytest.mark.parametrize("behaviour", ["hang", "close", "page", 408, 409, 429, 500, 502, 503])
async def test_transient_fault_is_retried_as_often_as_the_profile_says(
    rig: LanguageModelHarness, behaviour: Behaviour
) -> None:
    rig.server.become(behaviour)
    assert isinstance(await failure(rig.models(retries=2, timeout_s=0.5)), Unavailable)
    assert len(rig.server.questions) == 3
    assert len(rig.pauses) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_permanent_fault_is_not_retried(rig: LanguageModelHarness, status: int) -> None:
    rig.server.become(status)
    assert isinstance(await failure(rig.models(retries=2)), Unavailable)
    assert len(rig.server.questions) == 1


async def test_an_attempt_that_succeeds_ends_the_retries(rig: LanguageModelHarness) -> None:
    rig.server.next(500, "close")
    assert (await ask(rig.models(retries=5))).answer.mode == "code"
    assert len(rig.server.questions) == 3


async def test_retry_after_is_honoured(rig: LanguageModelHarness) -> None:
    rig.server.headers = {"Retry-After": "7"}
    rig.server.next(429)
    await ask(rig.models(retries=1))
    assert rig.pauses == [7.5]


async def test_long_retry_after_opens_the_breaker(rig: LanguageModelHarness) -> None:
    rig.server.headers = {"Retry-After": "60"}
    rig.server.become(429)
    models = rig.models(retries=5)
    await failure(models)
    assert len(rig.server.questions) == 1
    assert not models.available("understand.turn", "understand")


async def test_account_without_credit_is_not_retried(rig: LanguageModelHarness) -> None:
    rig.server.error = "You exceeded your quota (insufficient_quota)"
    rig.server.become(429)
    assert "no credit" in str(await failure(rig.models(retries=5)))
    assert len(rig.server.questions) == 1


async def test_refusal_after_other_answers_is_unanswerable(rig: LanguageModelHarness) -> None:
    models = rig.models()
    await ask(models)
    rig.server.next(400)
    assert isinstance(await failure(models), Unanswerable)


async def test_missing_key_is_reported_and_nothing_is_sent(rig: LanguageModelHarness) -> None:
    models = rig.models(environment={})
    problem = await failure(models)
    assert isinstance(problem, Unavailable)
    assert "ANY_KEY, which is not set" in str(problem)
    assert not rig.server.questions
    assert not models.available("understand.turn", "understand")
    assert models.status()["default"]["last_error"] == str(problem)


@pytest.mark.parametrize("behaviour", ["garbage", "cut", "empty"])
async def test_invalid_answer_is_repaired(rig: LanguageModelHarness, behaviour: Behaviour) -> None:
    rig.server.next(behaviour)
    answered = await ask(rig.models())
    assert answered.answer.mode == "code"
    assert answered.repaired is True
    assert answered.tokens_in == 22
    assert answered.tokens_out == 14
    assert rig.number("answers_total", outcome="repaired") == 1


async def test_the_repair_shows_the_model_its_answer_and_the_error(rig: LanguageModelHarness) -> None:
    rig.server.texts.append('{"interaction_confidence": 95}')
    await ask(rig.models())
    repair = rig.server.questions[1].messages[-1]
    assert r"{\"interaction_confidence\": 95}" in repair
    assert "interaction_confidence: Input should be less than or equal to 1" in repair
    assert repair.endswith(PROMPT.user)


async def test_repair_mentions_that_the_answer_was_cut_off(rig: LanguageModelHarness) -> None:
    rig.server.next("cut")
    await ask(rig.models(max_tokens=50))
    assert "cut off at 50 tokens" in rig.server.questions[1].messages[-1]


@pytest.mark.parametrize("text", [GARBAGE, '{"mode": ["code"]}', '{"items": "none"}', "null", "[]", '"code"'])
async def test_two_invalid_answers_are_unanswerable(rig: LanguageModelHarness, text: str) -> None:
    rig.server.texts.extend([text, text])
    models = rig.models()
    assert isinstance(await failure(models), Unanswerable)
    assert len(rig.server.questions) == 2
    assert models.status()["default"]["failures"] == 1
    assert rig.number("answers_total", outcome="unanswerable") == 1


async def test_filtered_answer_is_not_repaired(rig: LanguageModelHarness) -> None:
    rig.server.become("refuse")
    assert isinstance(await failure(rig.models()), Unanswerable)
    assert len(rig.server.questions) == 1


async def test_an_outage_during_the_repair_is_unavailable(rig: LanguageModelHarness) -> None:
    rig.server.next("garbage", 500)
    assert isinstance(await failure(rig.models()), Unavailable)
