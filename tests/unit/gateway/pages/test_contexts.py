"""What a context was based on: its memories by section, what was forgotten since, and the turns behind them."""

import pytest
from modestream_client.failures import MemoryServiceError

from gateway.service.service import MemoryService
from tests.builders.records import memory_record
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over


@pytest.fixture
def wire() -> FakeWire:
    wire = FakeWire()
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    turn = {"turn_id": "t-m1", "conversation_id": "c1", "partition": 0, "offset": 7}
    shared = {"section": "retrieved_evidence", "tokens": 12, "score": 0.81}
    wire.results["get_context"] = {
        "context_id": "ctx-1",
        "at": "2026-03-01T09:30:00Z",
        "kind": "answer",
        "mode": "journal",
        "interaction_mode": "TASK",
        "revision": 3,
        "principal": "agent",
        "references": [
            {"memory_id": "m1", "version": 1, "turns": [turn], **shared},
            {"memory_id": "m2", "version": 1, "turns": [], "forgotten": True, **shared},
        ],
        "dropped": ["m9"],
        "tokens": {"total": 40},
    }

    def get_memory(record: dict[str, dict[str, str]]) -> dict[str, object]:
        if record["arguments"]["memory_id"] == "m2":
            raise MemoryServiceError("not_found", "gone", "memory_id")
        return memory_record("m1", "We moved to <Kent>.")

    wire.results["get_memory"] = get_memory
    return wire


async def test_a_basis_leads_to_memories_and_their_turns(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/contexts/ctx-1?user=ana")).text
    assert "What an answer was based on" in page
    assert "We moved to &lt;Kent&gt;." in page
    assert "/admin/conversations/c1?user=ana" in page
    assert "0.81" in page


async def test_forgotten_memories_stay_as_ids(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/contexts/ctx-1?user=ana")).text
    assert "Forgotten since" in page


async def test_a_context_that_is_not_kept_names_the_setting(wire: FakeWire) -> None:
    def missing(_: object) -> dict[str, object]:
        raise MemoryServiceError("not_found", "no context", "context_id")

    wire.results["get_context"] = missing
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/contexts/ctx-9?user=ana")).text
    assert "CONTEXT_LOG=ids" in page
