"""Providers for benchmarks of others, over stand-ins of their packages and a running service."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.fakes import benchmarks
from tests.wheels.installed import READY_WITHIN_S, Service

pytestmark = pytest.mark.timeout(READY_WITHIN_S)

RUN = Path("outputs/locomo/modestream/_store/locomo10/all")

SAID = '[{"speaker": "Ana", "text": "The garage door sticks."}, {"speaker": "Ben", "text": "I will oil it."}]'


@pytest.fixture(autouse=True)
def _service(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmarks.install()
    monkeypatch.setenv("MODESTREAM_URL", service.url)


@pytest.fixture
def unit() -> str:
    """A user of a benchmark."""
    return f"conv-{uuid4().hex}"


def amb(unit: str) -> Any:
    from bench.providers.amb import ModestreamMemoryProvider  # noqa: PLC0415 - imports the stand-in

    provider = ModestreamMemoryProvider()
    provider.initialize()
    provider.prepare(RUN, {unit})
    return provider


def test_amb_finds_the_document_of_a_message(unit: str) -> None:
    provider = amb(unit)
    provider.ingest([benchmarks.Document("session_1", SAID, unit, timestamp="2026-03-01T09:30:00+00:00")])
    found, raw = provider.retrieve("what is wrong with the garage door?", 1, unit)
    provider.cleanup()
    assert found[0].id == "session_1"
    assert "Ana: The garage door sticks." in found[0].content
    assert raw["numbers"] == [0]


def test_amb_stores_again_what_an_earlier_run_has_left(unit: str) -> None:
    documents = [benchmarks.Document("session_1", SAID, unit)]
    for _ in range(2):
        provider = amb(unit)
        provider.ingest(documents)
        found, _ = provider.retrieve("garage door", 10, unit)
        provider.cleanup()
    assert len(found) == 2


def test_amb_shows_a_unit_nothing_of_another(unit: str) -> None:
    provider = amb(unit)
    provider.ingest([benchmarks.Document("session_1", SAID, f"{unit}-other")])
    found, _ = provider.retrieve("garage door", 10, unit)
    provider.cleanup()
    assert found == []


def omnimemeval() -> Any:
    from bench.providers.omnimemeval import ModestreamClient  # noqa: PLC0415 - imports the stand-in

    return ModestreamClient()


def test_omnimemeval_finds_a_message_with_its_time(unit: str) -> None:
    message = {"role": "user", "name": "Ana", "content": "Ana: The garage door sticks."}
    omnimemeval().add([message | {"chat_time": "2026-03-01T09:30:00+00:00"}], unit)
    found = omnimemeval().search("what is wrong with the garage door?", unit, 20)
    assert found == "[2026-03-01T09:30:00Z] Ana: The garage door sticks."


def test_omnimemeval_adds_again_what_was_deleted(unit: str) -> None:
    message = {"role": "user", "content": "The garage door sticks."}
    omnimemeval().add([message], unit)
    omnimemeval().delete(unit)
    assert omnimemeval().search("garage door", unit, 20) == ""
    omnimemeval().add([message], unit)
    assert "The garage door sticks." in omnimemeval().search("garage door", unit, 20)
