"""The log: JSON in every line; a line for calls that destroy or take out data, without text."""

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from modestream_client import MemoryServiceError, MemoryTimeout
from starlette.datastructures import Headers

from gateway.keys.key_file import Key, KeyFile
from gateway.service.access import AUDIT, AuditFile
from gateway.service.calls import Call, Caller, Json
from gateway.service.memories import Selected
from gateway.service.service import MemoryService
from streams.up.layout import free_port
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import http_over

USER = "/v1/users/u1"
SCOPE = {"user_id": "u1", "project_id": "p1"}
FORGOTTEN = {"forgotten": 3}
ITEM = {
    **dict.fromkeys(("conversation_id", "role", "speaker", "occurred_at", "mode", "importance", "metadata")),
    "turn_id": "t1",
    "scope": SCOPE,
    "text": "secret text",
}


class App:
    """Every request comes from the same key."""

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        return Caller("k1", "app")


@contextmanager
def logging_at_info() -> Iterator[None]:
    """Log what the gateway logs at any level of its settings."""
    logger = logging.getLogger(AUDIT)
    before = logger.level
    logger.setLevel(logging.INFO)
    yield
    logger.setLevel(before)


@pytest.fixture
async def http(wire: FakeWire) -> AsyncIterator[httpx.AsyncClient]:
    wire.results = {
        "forget": FORGOTTEN,
        "delete_mode": {"name": "journal", "moved": 2, "forgotten": 0},
        "delete_category": {"name": "hosting"},
        "get_memory": {"scope": SCOPE, "memory_id": "m1", "text": "secret text"},
        "list.v1": {"items": [ITEM, ITEM], "next": None, "total": 2},
    }
    async with http_over(wire, callers=App()) as client:
        client.headers["X-Request-Id"] = "r-1"
        yield client


def audit_lines(caplog: pytest.LogCaptureFixture) -> list[Json]:
    return [json.loads(record.getMessage()) for record in caplog.records if record.name == AUDIT]


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        (
            "DELETE",
            "/memories/m1?project_id=p1",
            {"action": "forget", "scope": {"project_id": "p1"}, "what": {"memory_id": "m1"}, "counts": FORGOTTEN},
        ),
        ("DELETE", "?confirm=u1", {"action": "forget", "scope": {}, "what": {"user": True}, "counts": FORGOTTEN}),
        (
            "DELETE",
            "/modes/journal?memories=move:general",
            {
                "action": "delete_mode",
                "scope": {},
                "mode": "journal",
                "memories": "move:general",
                "counts": {"forgotten": 0, "moved": 2},
            },
        ),
        (
            "DELETE",
            "/categories/hosting",
            {"action": "delete_category", "scope": {}, "category": "hosting", "counts": {}},
        ),
        ("GET", "/export", {"action": "export", "scope": {"project_id": "*"}, "counts": {"turns": 2}}),
    ],
)
async def test_call_is_told_of(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, method: str, path: str, told: Json
) -> None:
    caplog.set_level("INFO", AUDIT)
    assert (await http.request(method, USER + path)).status_code == 200
    by = {"outcome": "done", "principal": "app", "caller": "k1", "user_id": "u1", "request_id": "r-1"}
    assert audit_lines(caplog) == [{**told, **by}]
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [(MemoryServiceError("not_allowed", "no"), "not_allowed"), (MemoryTimeout("late", is_written=True), "timeout")],
)
async def test_failure_is_told_of_too(
    wire: FakeWire, http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, failure: Exception, outcome: str
) -> None:
    caplog.set_level("INFO", AUDIT)
    wire.failure = failure
    await http.delete(f"{USER}?confirm=u1")
    await http.get(f"{USER}/export")
    assert [
        (audit_line["action"], audit_line["outcome"], audit_line["counts"]) for audit_line in audit_lines(caplog)
    ] == [("forget", outcome, {}), ("export", outcome, {})]


async def test_file_has_the_lines_with_their_time_and_no_others(http: httpx.AsyncClient, tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "logs" / "audit.jsonl")
    logging.getLogger(AUDIT).addHandler(file)
    try:
        logging.getLogger("gateway").error("something else " * 1_000)
        with logging_at_info():
            await http.delete(f"{USER}?confirm=u1")
    finally:
        logging.getLogger(AUDIT).removeHandler(file)
        file.close()
    [line] = (tmp_path / "logs" / "audit.jsonl").read_text().splitlines()
    assert json.loads(line)["action"] == "forget"
    assert datetime.fromisoformat(json.loads(line)["at"]).utcoffset() == timedelta(0)


async def test_other_calls_are_not_told_of(http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", AUDIT)
    assert (await http.get(f"{USER}/memories")).status_code == 200
    assert (await http.put(f"{USER}/modes/journal", json={"embedder": "general"})).status_code == 200
    assert audit_lines(caplog) == []


async def test_each_memory_of_a_selection_leaves_a_line(wire: FakeWire, caplog: pytest.LogCaptureFixture) -> None:
    wire.results["forget"] = FORGOTTEN
    call = Call.within(Caller("k1", "app"), "u1", request_id="r-1")
    selected = [Selected(memory_id, {"project_id": "p1"}) for memory_id in ("m1", "m2")]
    with caplog.at_level("INFO", AUDIT):
        outcome = await MemoryService(wire).memories.forget_selected(call, selected)
    assert outcome.count == 6
    told = [(audit_line["action"], audit_line["what"], audit_line["counts"]) for audit_line in audit_lines(caplog)]
    assert told == [("forget", {"memory_id": memory_id}, FORGOTTEN) for memory_id in ("m1", "m2")]


ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The log of a gateway with a key and without a policy or a broker, ended by SIGTERM once it serves."""
    KeyFile(keys=(Key(id="k1", sha256="0" * 64, principal="app"),)).write(
        keys := tmp_path_factory.mktemp("keys") / "keys.json"
    )
    environment = os.environ | {
        "MODESTREAM_BROKER": f"kafka://127.0.0.1:{free_port()}",
        "MODESTREAM_GATEWAY_BIND": f"127.0.0.1:{free_port()}",
        "MODESTREAM_GATEWAY_KEYS": str(keys),
    }
    command = [sys.executable, "-m", "streams", "gateway"]
    written: list[str] = []
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            written.append(line)
            if "Application startup complete" in line:
                process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
    return [json.loads(line) for line in written]


def test_first_line_is_the_start_and_the_last_one_the_end(lines: list[dict[str, Any]]) -> None:
    assert lines[0]["event"] == "starting"
    assert lines[-1]["event"] == "ended"
    assert lines[-1]["code"] == 0


def test_signal_is_told_once(lines: list[dict[str, Any]]) -> None:
    assert [line["event"] for line in lines].count("stopping by SIGTERM") == 1


def test_lines_of_the_server_have_its_logger(lines: list[dict[str, Any]]) -> None:
    assert "uvicorn.error" in {line.get("logger") for line in lines}


def test_administrators_are_told_at_the_start(lines: list[dict[str, Any]]) -> None:
    [told] = [line for line in lines if "are administrators" in line["event"]]
    assert told["level"] == "warning"
