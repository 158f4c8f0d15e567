"""The adapter while its server is down: circuit breaker, probes and concurrency."""

import asyncio

from schemas.failures import Unavailable
from streams.adapters.language.endpoint import BreakerLimits
from tests.harnesses.language_models import LanguageModelHarness, ask, failure


async def test_five_failures_open_the_breaker_and_then_nothing_is_sent(rig: LanguageModelHarness) -> None:
    rig.server.become(500)
    models = rig.models(BreakerLimits())
    for _ in range(5):
        await failure(models)
    assert "is paused" in str(await failure(models))
    assert len(rig.server.questions) == 5
    assert rig.number("breaker") == 2


async def test_open_breaker_ends_the_retries_of_a_call(rig: LanguageModelHarness) -> None:
    rig.server.become(500)
    assert isinstance(await failure(rig.models(BreakerLimits(failures=2), retries=9)), Unavailable)
    assert len(rig.server.questions) == 2


async def test_three_timeouts_open_the_breaker(rig: LanguageModelHarness) -> None:
    rig.server.become("hang")
    models = rig.models(BreakerLimits(), timeout_s=0.05)
    for _ in range(3):
        await failure(models)
    assert models.status()["default"]["state"] == "open"


async def test_a_probe_that_is_answered_closes_the_breaker(rig: LanguageModelHarness) -> None:
    rig.server.become(500)
    models = rig.models(BreakerLimits(failures=1, initial_open_s=0.01))
    await failure(models)
    rig.server.become("ok")
    await models.until_available("understand.turn", "understand")
    assert models.status()["default"]["state"] == "half_open"
    await ask(models)
    assert models.status()["default"]["state"] == "closed"
    assert rig.number("breaker") == 0


async def test_half_open_breaker_admits_one_of_many_calls(rig: LanguageModelHarness) -> None:
    rig.server.become(500)
    models = rig.models(BreakerLimits(failures=1, initial_open_s=0.01))
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


async def test_concurrency_is_limited_by_the_profile(rig: LanguageModelHarness) -> None:
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
