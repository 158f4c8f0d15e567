"""The lines of a process's start and end."""

import os
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from gateway.settings import GatewaySettings
from schemas.version import VERSION
from streams.observability.logs import changed_settings, run_logged
from streams.settings import Settings


def settings(**given: Any) -> Settings:
    return Settings(_env_file=None, **given)


def ends(code: int | str) -> Callable[[], int]:
    def run() -> int:
        raise SystemExit(code)

    return run


@pytest.fixture
def lines() -> Iterator[Sequence[MutableMapping[str, Any]]]:
    with capture_logs() as logged:
        yield logged


def test_first_line_has_version_and_changed_settings(lines: Sequence[MutableMapping[str, Any]]) -> None:
    run_logged("worker", settings(partitions=12), lambda: 0)
    first = lines[0]
    assert first["event"] == "starting"
    assert first["part"] == "worker"
    assert first["version"] == VERSION
    assert first["settings"] == {"partitions": 12}


@pytest.mark.parametrize(
    ("run", "code", "level"),
    [(lambda: 0, 0, "info"), (lambda: 69, 69, "error"), (ends(70), 70, "error"), (ends(0), 0, "info")],
)
def test_last_line_has_the_code(
    lines: Sequence[MutableMapping[str, Any]], run: Callable[[], int], code: int, level: str
) -> None:
    assert run_logged("gateway", settings(), run) == code
    last = lines[-1]
    assert last["event"] == "ended"
    assert last["code"] == code
    assert last["log_level"] == level


def test_refusal_is_the_last_line_and_goes_on(lines: Sequence[MutableMapping[str, Any]]) -> None:
    with pytest.raises(SystemExit, match="no such file"):
        run_logged("worker", settings(), ends("no such file"))
    last = lines[-1]
    assert last["code"] == os.EX_CONFIG
    assert last["reason"] == "no such file"


def test_defect_is_the_last_line_with_its_traceback(lines: Sequence[MutableMapping[str, Any]]) -> None:
    def broken() -> int:
        raise KeyError("x")

    assert run_logged("worker", settings(), broken) == os.EX_SOFTWARE
    last = lines[-1]
    assert last["code"] == os.EX_SOFTWARE
    assert last["exc_info"]


def test_no_secret_is_shown() -> None:
    given = settings(
        qdrant_url="https://admin:hunter2@qdrant:6333",
        qdrant_api_key="hunter2",
        kafka_security={"username": "u", "password": "hunter2"},
        llm_profiles={"default": {"model": "openai/m"}},
    )
    shown = changed_settings(given)
    assert shown == {
        "qdrant_url": "https://…@qdrant:6333",
        "qdrant_api_key": "set",
        "kafka_security": "set",
        "llm_profiles": "set",
    }


def test_secret_of_the_gateway_is_not_shown() -> None:
    given = GatewaySettings(_env_file=None, gateway_cookie_secret=SecretStr("hunter2" * 5), gateway_keys=Path("k.json"))
    assert changed_settings(given) == {"gateway_cookie_secret": "set", "gateway_keys": "k.json"}
