"""Ask: what the page asks of the service, and what it shows of the answers."""

import re
from typing import Any

import pytest

from gateway.pages.contexts import PackedContext
from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over

HIT = {
    "memory_id": "m1",
    "turn_id": "t1",
    "conversation_id": "c1",
    "scope": {"user_id": "u1", "project_id": "p1"},
    "type": "episodic",
    "mode": "code",
    "mode_source": "caller",
    "role": "user",
    "speaker": "Ana",
    "text": "<script>alert(1)</script> runs at four",
    "occurred_at": "2026-03-01T09:30:00Z",
    "score": 0.81,
    "contributions": {"its meaning as a whole": 2.0, "its age": -0.5},
    "evidence": [],
    "version": 1,
    "embedding_status": "ready",
}

CONTEXT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "You are …"},
        {
            "role": "user",
            "content": 'They follow.\n{"about":"","memories":{"2026-03-01":["[1] 09:30 Ana: It runs at four."]}}\nGo.',
        },
        {"role": "assistant", "content": "Ok"},
    ],
    "references": ["m1"],
    "sections": {"rules": ["m1"], "retrieved_evidence": []},
    "interaction_mode": "TASK",
    "interaction_confidence": 0.9,
    "budget": {"rules": 100, "retrieved_evidence": 500},
    "tokens": {"total": 300, "rules": 60},
    "dropped": ["m2"],
    "sticky": ["m1"],
    "breaches": [],
    "warnings": [],
}


@pytest.fixture
def service(wire: FakeWire) -> MemoryService:
    wire.results["list.v1"] = {"items": [{"scope": {"project_id": "p1"}}], "next": None, "total": 1}
    wire.results["retrieve.v1"] = {"hits": [HIT], "modes": ["code"], "strategy": "hybrid", "diagnostics": {}}
    wire.results["assemble.v1"] = CONTEXT
    wire.results["get_memory"] = {**HIT, "memory_id": "m2", "text": "It was left out."}
    return MemoryService(wire)


async def page_at(service: MemoryService, address: str) -> str:
    async with pages_over(service) as http:
        answer = await http.get(address)
        assert answer.status_code == 200, answer.text
        return answer.text


async def test_hits_are_asked_for_as_a_client_would_and_explained(service: MemoryService, wire: FakeWire) -> None:
    page = await page_at(service, "/admin/ask?user=u1&project=p1&mode=code&q=when+does+it+run&since=2026-01-01")
    [asked] = [one for one in wire.records if one["schema"] == "retrieve.v1"]
    assert asked["query"] == "when does it run"
    assert (asked["mode"], asked["explain"], asked["since"]) == ("code", True, "2026-01-01T00:00:00Z")
    assert asked["scope"] == {"user_id": "u1", "project_id": "p1"}
    assert "81.0 %" in page
    assert "<script>alert" not in page
    assert "+2.00" in page
    assert "-0.50" in page
    assert "+1.50" in page, "the sum"
    assert "For it: its meaning as a whole." in page
    assert "Against it: its age." in page
    assert "/admin/conversations/c1?user=u1&amp;project=p1&amp;of=p1&amp;at=2026-03-01T09%3A30%3A00Z#m-m1" in page


async def test_without_a_question_nothing_is_asked(service: MemoryService, wire: FakeWire) -> None:
    await page_at(service, "/admin/ask?user=u1&q=+")
    assert [one for one in wire.records if one["schema"] == "retrieve.v1"] == []


async def test_a_context_is_shown_by_section_with_what_was_left_out(service: MemoryService, wire: FakeWire) -> None:
    page = await page_at(service, "/admin/ask?user=u1&project=p1&show=context&q=fix+it&budget=1200")
    [asked] = [one for one in wire.records if one["schema"] == "assemble.v1"]
    assert asked["budget_tokens"] == 1200
    assert "2026-03-01 09:30 Ana: It runs at four." in page
    assert "It was left out." in page


async def test_a_budget_that_is_no_number_is_refused(service: MemoryService) -> None:
    async with pages_over(service) as http:
        assert (await http.get("/admin/ask?user=u1&show=context&q=x&budget=much")).status_code == 422


def test_bars_of_a_context_fill_its_share_of_the_budget() -> None:
    packed = PackedContext(CONTEXT, 600)
    assert [(bar.name, bar.width) for bar in packed.bars] == [("rules", 10.0), ("frame", 40.0)]


def test_a_context_whose_message_is_no_json_shows_ids() -> None:
    message = {"role": "user", "content": '{"about": broken'}
    packed = PackedContext({**CONTEXT, "messages": [message]}, 600)
    assert [entry.text for entry in packed.sections[0].entries] == [""]
    assert re.match("m1", packed.sections[0].entries[0].memory_id)
