"""Moving many memories: by project, in commands of the contract's size, and nothing where they are not."""

import pytest
from modestream_client.failures import MemoryServiceError

from gateway.service.calls import Call, Caller, Json, Refused
from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire

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
