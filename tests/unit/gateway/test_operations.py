"""The table of operations: a row is all that routes, records and documents of an operation need."""

from typing import Any

import httpx
import pytest
from modestream_client import MemoryCalls
from modestream_client.failures import MemoryServiceError
from modestream_client.http.routes import route_of
from modestream_client.operations import COMMANDS, OPERATIONS, USER, AnyResult, Body, Http, Operation
from pydantic import BaseModel

from gateway.http.app import create_app
from gateway.http.routes.operations import operation_routes
from gateway.http.shapes import Shapes
from gateway.service.calls import Call, Caller, Json, Refused
from gateway.service.service import MemoryService
from schemas.internal.changes import JOB_KINDS
from schemas.scopes import Scope
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import always_ready

SERVED = [row for row in OPERATIONS if row.http is not None]
ASKED_OVER_HTTP = [row for row in SERVED if row.record == "command.v1" and row.permission != "operate"]

WITHOUT_A_METHOD = {
    "get_file",
    "list_files",
    "get_file_parts",
    "get_job",
    "compare_embedders",
    "verify",
    "report_import",
}
"""Commands that a program sends by `command`, beside those of operators."""

JOB_METHODS = {"backfill": "run_job", "rebuild": "run_job", "reconcile": "run_job", "retry_failed": "run_job"}


class PinArguments(BaseModel, extra="ignore", strict=True):
    """A name to pin, and why."""

    name: str
    reason: str


PIN = Operation(
    "pin_mode",
    "command",
    "manage",
    PinArguments,
    AnyResult,
    Http("PUT", f"{USER}/pins/{{name}}", "modes", "Pin a mode", Body("PinBody", {"reason": "mine"})),
)


async def pinned(wire: FakeWire, body: dict[str, Any]) -> httpx.Response:
    """Put a pin over a route that comes from its row alone."""
    app, shapes = create_app(MemoryService(wire), always_ready), Shapes(Scope)
    app.include_router(operation_routes(MemoryService(wire), shapes, [PIN]))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http:
        return await http.put("/v1/users/u1/pins/diary", json=body)


async def test_a_row_is_a_route_whose_record_has_its_arguments() -> None:
    wire = FakeWire()
    assert (await pinned(wire, {"reason": "mine", "project_id": "p1"})).status_code == 200
    assert wire.sent[0][0] == "commands"
    assert wire.records[0] == {
        "schema": "command.v1",
        "command": "pin_mode",
        "scope": {"user_id": "u1", "project_id": "p1"},
        "arguments": {"name": "diary", "reason": "mine"},
    }


async def test_a_row_is_a_shape_that_refuses_what_its_arguments_do_not_have() -> None:
    wire = FakeWire()
    assert (await pinned(wire, {"reasn": "mine"})).status_code == 422
    assert wire.sent == []


def test_every_address_of_the_table_is_served() -> None:
    paths = create_app(MemoryService(FakeWire()), always_ready).openapi()["paths"]
    addresses = {(row.name, row.http.path, row.http.method.lower()) for row in SERVED if row.http is not None}
    assert {address for address in addresses if address[2] not in paths.get(address[1], ())} == set()


@pytest.mark.parametrize("row", ASKED_OVER_HTTP, ids=lambda row: row.name)
def test_the_client_asks_at_the_address_of_the_table(row: Operation[Any]) -> None:
    assert row.http is not None
    arguments = dict.fromkeys(row.http.names, "x")
    route = route_of(row.record_of({"user_id": "u1", "project_id": "p1"}, arguments))
    assert route.method == row.http.method
    assert route.path == row.http.path.format(user_id="u1", **arguments)


@pytest.mark.parametrize("row", COMMANDS.values(), ids=lambda row: row.name)
def test_the_client_has_a_method_for_every_command(row: Operation[Any]) -> None:
    if row.permission != "operate" and row.name not in WITHOUT_A_METHOD:
        assert hasattr(MemoryCalls, JOB_METHODS.get(row.name, row.name))


def test_jobs_of_the_table_are_those_of_the_worker() -> None:
    assert {row.name for row in OPERATIONS if row.kind == "job"} == set(JOB_KINDS)


def test_names_are_unique() -> None:
    assert len({row.name for row in OPERATIONS}) == len(OPERATIONS)


HERE = {"app": {f"a{number}" for number in range(700)}, "home": {"h0", "h1"}}


def _moved(record: Json) -> Json:
    found = HERE[record["scope"]["project_id"]] & set(record["arguments"]["memory_ids"])
    if not found:
        raise MemoryServiceError("not_found", "no such memory", "arguments.memory_ids")
    return {"moved": len(found)}


@pytest.fixture
def wire(wire: FakeWire) -> FakeWire:
    wire.results["set_memory_mode"] = _moved
    projects = [{"scope": {"user_id": "u1", "project_id": name}} for name in HERE]
    wire.results["list.v1"] = {"items": projects, "next": None, "total": 2}
    return wire


def _sizes(wire: FakeWire) -> list[tuple[str, int]]:
    commands = [record for record in wire.records if record.get("command") == "set_memory_mode"]
    return [(command["scope"]["project_id"], len(command["arguments"]["memory_ids"])) for command in commands]


async def test_moves_in_pieces_of_one_command(wire: FakeWire) -> None:
    ids = sorted(HERE["app"])
    moved = await MemoryService(wire).memories.move_all(Call.within(Caller(), "u1"), {"app": ids}, "code")
    assert moved == {"moved": 700}
    assert _sizes(wire) == [("app", 500), ("app", 200)]
    assert {record["arguments"]["mode"] for record in wire.records} == {"code"}


async def test_all_projects_are_searched(wire: FakeWire) -> None:
    service, call = MemoryService(wire).memories, Call.within(Caller(), "u1")
    assert await service.move_all(call, {"*": ["a1", "h1"]}, "code") == {"moved": 2}
    assert _sizes(wire) == [("app", 2), ("home", 2)]


async def test_what_is_not_there_is_not_moved(wire: FakeWire) -> None:
    service, call = MemoryService(wire).memories, Call.within(Caller(), "u1")
    assert await service.move_all(call, {"home": ["a1"], "app": []}, "code") == {"moved": 0}


async def test_too_many_are_refused_before_anything_is_sent(wire: FakeWire) -> None:
    with pytest.raises(Refused, match="too many") as refused:
        await MemoryService(wire).memories.move_all(Call.within(Caller(), "u1"), {"app": ["x"] * 20_001}, "code")
    assert refused.value.code == "too_large"
    assert wire.sent == []
