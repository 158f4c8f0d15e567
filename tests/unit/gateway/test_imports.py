"""`POST …/imports`: a file is taken, read in a process of its own, and published; the worker is told how far it is."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from modestream_client.answers import Reply
from modestream_client.failures import MemoryUnreachable
from modestream_client.records import Written
from starlette.datastructures import Headers

from gateway.service import imports
from gateway.service.calls import Caller
from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import http_over

Json = dict[str, Any]

PATH = "/v1/users/u1/imports"


def lines(count: int, **fields: Any) -> bytes:
    turn = {"schema": "turn.v1", "scope": {"user_id": "x"}, "conversation_id": "c1", "role": "user"}
    made = (turn | {"turn_id": f"t{number}", "content": f"remark {number}"} | fields for number in range(count))
    return b"".join(json.dumps(each).encode() + b"\n" for each in made)


def reports(wire: FakeWire) -> list[Json]:
    return [record["arguments"] for record in wire.records if record.get("command") == "report_import"]


async def ended(wire: FakeWire) -> Json:
    async with asyncio.timeout(30):
        while not (ends := [report for report in reports(wire) if "result" in report or "error" in report]):
            await asyncio.sleep(0.02)
    return ends[0]


@asynccontextmanager
async def served(wire: FakeWire, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A gateway with a folder for exports, as long as it runs."""
    service = MemoryService(wire, exports=folder)
    async with service.imports.running(), http_over(service) as http:
        yield http


async def test_an_import_is_a_job(wire: FakeWire, tmp_path: Path) -> None:
    async with served(wire, tmp_path) as http:
        begun = await http.post(PATH, params={"format": "jsonl"}, content=lines(3))
        end = await ended(wire)
    assert begun.status_code == 202
    assert begun.headers["location"] == f"/v1/users/u1/jobs/{end['job_id']}"
    assert begun.json()["read"] == 0
    assert end["result"]["stored"] == 3


async def test_a_job_that_runs_has_its_counts(wire: FakeWire, http: httpx.AsyncClient) -> None:
    counts = {"read": 4, "stored": 2, "duplicate": 1, "refused": 1}
    wire.results["get_job"] = {"state": "running", "progress": counts}
    answer = (await http.get("/v1/users/u1/jobs/import-1")).json()
    assert {name: answer[name] for name in counts} == counts


async def test_an_import_of_which_nothing_is_heard_is_unavailable(wire: FakeWire, http: httpx.AsyncClient) -> None:
    wire.results["get_job"] = {"state": "running", "progress": {"read": 4}, "reported_at_ms": 1}
    assert (await http.get("/v1/users/u1/jobs/import-1")).status_code == 503


async def test_turns_are_of_the_user_of_the_path(wire: FakeWire, tmp_path: Path) -> None:
    async with served(wire, tmp_path) as http:
        await http.post(PATH, params={"format": "jsonl", "project_id": "p1"}, content=lines(1))
        await ended(wire)
    assert [record["scope"] for topic, record, _ in wire.sent if topic == "turns"] == [
        {"user_id": "u1", "project_id": "p1"}
    ]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"format": "icq"}, "format"),
        ({}, "format"),
        ({"format": "jsonl", "zone": "Atlantis"}, "zone"),
        ({"format": "jsonl", "mode_for": "Foo"}, "mode_for"),
        ({"format": "jsonl", "limit": "3"}, "limit"),
    ],
)
async def test_a_query_that_makes_no_sense_is_refused(http: httpx.AsyncClient, query: Json, field: str) -> None:
    answer = await http.post(PATH, params=query, content=lines(1))
    assert answer.status_code == 422
    assert answer.json()["field"] == field


async def test_a_body_of_another_format_is_refused_and_not_kept(wire: FakeWire, tmp_path: Path) -> None:
    async with served(wire, tmp_path) as http:
        answer = await http.post(PATH, params={"format": "chatgpt"}, content=b"<!doctype html>")
    assert answer.json()["field"] == "format"
    assert [*tmp_path.iterdir()] == []
    assert wire.sent == []


async def test_a_body_that_is_too_large_is_refused_and_not_kept(
    wire: FakeWire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MAX_EXPORT_BYTES", 1000)
    async with served(wire, tmp_path) as http:
        answer = await http.post(PATH, params={"format": "jsonl"}, content=lines(100))
    assert answer.status_code == 413
    assert [*tmp_path.iterdir()] == []


async def test_exports_of_a_caller_have_bounded_room(
    wire: FakeWire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MAX_SPOOLED_OF_SENDER", 1000)
    async with served(wire, tmp_path) as http:
        assert (await http.post(PATH, params={"format": "jsonl"}, content=lines(100))).status_code == 429
        assert (await http.post(PATH, params={"format": "jsonl"}, content=lines(3))).status_code == 202


async def test_an_export_for_which_the_disk_has_no_room_is_refused_and_not_kept(
    wire: FakeWire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports._Job, "file", Path("/dev/full"))
    async with served(wire, tmp_path) as http:
        answer = await http.post(PATH, params={"format": "jsonl"}, content=lines(1))
    assert answer.status_code == 503
    assert [*tmp_path.iterdir()] == []


class NamedCallers:
    """Every request says whose key it has."""

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        return Caller(headers["x-api-key"], "app")


class WireWithout(FakeWire):
    """Answers no turns of one user."""

    async def request(self, topic: str, value: Json, **how: Any) -> tuple[Reply, Written]:
        if topic == "turns" and value["scope"]["user_id"] == "slow":
            raise MemoryUnreachable("away")
        return await super().request(topic, value, **how)


async def test_imports_of_a_caller_leave_places_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "AT_ONCE_OF_SENDER", 1)
    wire = WireWithout()
    service = MemoryService(wire, exports=tmp_path)
    service.imports._at_once = asyncio.Semaphore(2)
    async with service.imports.running(), http_over(service, callers=NamedCallers()) as http:
        for user, key in (("slow", "a"), ("slow", "a"), ("u1", "b")):
            path, headers = f"/v1/users/{user}/imports", {"x-api-key": key}
            await http.post(path, params={"format": "jsonl"}, content=lines(1), headers=headers)
        end = await ended(wire)
    assert end["result"]["stored"] == 1


async def test_imports_of_a_caller_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "MAX_IMPORTS_OF_SENDER", 2)
    async with served(StoppingWire(0), tmp_path) as http:
        answers = [await http.post(PATH, params={"format": "jsonl"}, content=lines(1)) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [202, 202, 429]


async def test_imports_that_are_done_make_place(
    wire: FakeWire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MAX_IMPORTS_OF_SENDER", 1)
    async with served(wire, tmp_path) as http:
        await http.post(PATH, params={"format": "jsonl"}, content=lines(1))
        await ended(wire)
        await asyncio.sleep(0.1)
        assert (await http.post(PATH, params={"format": "jsonl"}, content=lines(1))).status_code == 202


async def test_a_broken_turn_is_never_sent(wire: FakeWire, tmp_path: Path) -> None:
    async with served(wire, tmp_path) as http:
        await http.post(PATH, params={"format": "jsonl"}, content=lines(1) + lines(2, role="pope"))
        end = await ended(wire)
    assert [problem["place"] for problem in end["result"]["problems"]] == [2, 3]
    assert len([topic for topic, _, _ in wire.sent if topic == "turns"]) == 1


class StoppingWire(FakeWire):
    """Answers some turns, and then none."""

    def __init__(self, answers: int) -> None:
        super().__init__()
        self.answers = answers

    async def request(self, topic: str, value: Json, **how: Any) -> tuple[Reply, Written]:
        if topic == "turns" and len(self.stored) >= self.answers:
            raise MemoryUnreachable("away")
        return await super().request(topic, value, **how)


async def test_a_gateway_that_starts_again_goes_on(tmp_path: Path) -> None:
    first = StoppingWire(40)
    async with served(first, tmp_path) as http:
        await http.post(PATH, params={"format": "jsonl"}, content=lines(100))
        async with asyncio.timeout(30):
            while len(first.stored) < 40:
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.1)
    second = FakeWire()
    async with served(second, tmp_path):
        end = await ended(second)
    assert end["result"]["stored"] == 100
    assert not first.stored.keys() & second.stored.keys()


async def test_what_is_imported_by_another_gateway_is_left_to_it(tmp_path: Path) -> None:
    first = StoppingWire(0)
    async with served(first, tmp_path) as http:
        await http.post(PATH, params={"format": "jsonl"}, content=lines(3))
        second = FakeWire()
        async with served(second, tmp_path):
            await asyncio.sleep(0.1)
        assert second.sent == []


async def test_a_file_that_was_not_taken_whole_is_removed(wire: FakeWire, tmp_path: Path) -> None:
    (tmp_path / "import-1").mkdir()
    (tmp_path / "import-1" / "export").write_bytes(b"x")
    async with served(wire, tmp_path):
        assert [*tmp_path.iterdir()] == []


async def test_a_reader_that_ends_too_early_is_told(
    wire: FakeWire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def cut_short(_: object) -> AsyncIterator[AsyncIterator[Json]]:
        async def read() -> AsyncIterator[Json]:
            yield {"is_of_format": True}

        yield read()

    monkeypatch.setattr(imports, "_lines_of", cut_short)
    async with served(wire, tmp_path) as http:
        await http.post(PATH, params={"format": "jsonl"}, content=lines(1))
        end = await ended(wire)
    assert end["result"]["problems"][0]["code"] == "too_large"
