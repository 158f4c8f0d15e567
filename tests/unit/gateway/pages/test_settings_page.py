"""Settings in force: for operators alone, each with its value, none with a secret."""

from typing import Any

import pytest

from gateway.connection_settings import settings_in_force
from gateway.service.calls import Caller
from gateway.service.service import MemoryService
from gateway.settings import GatewaySettings
from schemas.state.policies import Grant
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over

PAGE = "/admin/settings?user=ana"

SECURITY = {"protocol": "SASL_SSL", "username": "gateway", "password": "hunter2hunter2"}


def in_force(**given: Any) -> list[Any]:
    return settings_in_force(GatewaySettings(_env_file=None, **given))


@pytest.fixture
def wire() -> FakeWire:
    wire = FakeWire()
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    wire.results["health"] = {"service": {"partitions": 4, "vector_index": "embedded", "topic_prefix": "memory."}}
    return wire


async def page_of(wire: FakeWire, caller: Caller | None = None, **given: Any) -> tuple[int, str]:
    async with pages_over(MemoryService(wire), caller, in_force(**given)) as http:
        answer = await http.get(PAGE)
    return answer.status_code, answer.text


async def test_settings_are_shown_with_value_meaning_and_origin(wire: FakeWire) -> None:
    _, page = await page_of(wire, Caller(is_operator=True), gateway_mem0=True)
    row = page[page.index("GATEWAY_MEM0") :].partition("</tr>")[0]
    assert "yes" in row
    assert "changed" in row
    assert "Serve mem0" in row
    assert "changed" not in page[page.index("GATEWAY_BIND") :].partition("</tr>")[0]


async def test_what_the_workers_agreed_on_is_shown(wire: FakeWire) -> None:
    _, page = await page_of(wire, Caller(is_operator=True))
    assert "embedded" in page[page.index("vector index") :].partition("</dd>")[0]


async def test_who_may_not_operate_sees_no_settings(wire: FakeWire) -> None:
    reader = Caller(grants=(Grant.model_validate({"user_id": "ana", "may": ["read"]}),))
    status, page = await page_of(wire, reader)
    assert status == 403
    assert "GATEWAY_BIND" not in page


@pytest.mark.parametrize(
    "given",
    [
        {"gateway_cookie_secret": "hunter2hunter2" * 3},
        {"kafka_security": SECURITY},
        {"llm_profiles": {"default": {"api_key": "hunter2hunter2", "model": "m"}}},
        {"llm_profiles": {"default": {"headers": {"X-Token": "hunter2hunter2"}}}},
        {"openai_upstream": "https://api.example/v1", "broker": "kafka://hunter2hunter2:x@host:9092"},
    ],
)
def test_no_secret_is_shown(given: dict[str, Any]) -> None:
    shown = in_force(**given)
    assert "hunter2" not in str(shown)
    assert any(setting.is_changed for setting in shown)


def test_a_secret_that_is_not_set_is_said_to_be_missing() -> None:
    [secret] = [setting for setting in in_force() if setting.name == "GATEWAY_COOKIE_SECRET"]
    assert secret.value is None
