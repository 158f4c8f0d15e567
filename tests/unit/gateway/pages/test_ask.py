"""Ask: what the page asks of the service, and what it shows of the answers."""

import re
from typing import Any

import pytest

from gateway.pages.routes.ask import PackedContext
from gateway.service.boundaries import Boundaries
from gateway.service.service import MemoryService
from tests.builders.boundaries import told
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
    [asked] = [record for record in wire.records if record["schema"] == "retrieve.v1"]
    assert asked["query"] == "when does it run"
    assert asked["mode"] == "code"
    assert asked["explain"] is True
    assert asked["since"] == "2026-01-01T00:00:00Z"
    assert asked["scope"] == {"user_id": "u1", "project_id": "p1"}
    assert "81.0 %" in page
    assert "<script>alert" not in page
    assert "+2.00" in page
    assert "-0.50" in page
    assert "+1.50" in page, "the sum"
    assert "For: its meaning as a whole." in page
    assert "Against: its age." in page
    assert "/admin/conversations/c1?user=u1&amp;project=p1&amp;of=p1&amp;at=2026-03-01T09%3A30%3A00Z#m-m1" in page


LONG = {
    **HIT,
    "text": f"{'All about gardens. ' * 40}<b>Compost</b> belongs in the shade.{' Roses want sun.' * 40}",
    "passages": [{"start": 760, "end": 796, "score": 0.9}, {"start": 0, "end": 379, "score": 0.3}],
}


def shown(page: str, begin: str, end: str) -> str:
    return page.partition(begin)[2].partition(end)[0]


@pytest.fixture
def long_reply(service: MemoryService, wire: FakeWire) -> MemoryService:
    """The service of a user with one mode, where a question finds a long reply."""
    wire.results["retrieve.v1"] = {"hits": [LONG], "modes": ["code"], "strategy": "hybrid", "diagnostics": {}}
    boundaries = Boundaries()
    told(boundaries, "u1", modes=("code",))
    return MemoryService(wire, boundaries=boundaries)


@pytest.mark.parametrize("show", ["hits", "modes"])
async def test_a_long_reply_shows_its_best_passage_marked(long_reply: MemoryService, show: str) -> None:
    page = await page_at(long_reply, f"/admin/ask?user=u1&q=compost&show={show}")
    text = shown(page, '<div class="text">', "</div>")
    assert '<mark class="passage">&lt;b&gt;Compost&lt;/b&gt; belongs in the shade.</mark>' in text


async def test_a_long_reply_is_cut_around_its_best_passage(long_reply: MemoryService) -> None:
    page = await page_at(long_reply, "/admin/ask?user=u1&q=compost")
    assert len(shown(page, '<div class="text">', "</div>")) < 500


async def test_the_whole_of_a_long_reply_is_folded(long_reply: MemoryService) -> None:
    page = await page_at(long_reply, "/admin/ask?user=u1&q=compost")
    whole = shown(page, "<summary>All of it, 1,436 characters</summary>", "</details>")
    assert whole.count("Roses want sun.") == 40


async def test_the_best_passage_is_marked_in_the_whole(long_reply: MemoryService) -> None:
    page = await page_at(long_reply, "/admin/ask?user=u1&q=compost")
    marked = re.findall('<mark class="passage">(.*?)</mark>', shown(page, "<summary>All of it", "</details>"))
    assert marked == ["&lt;b&gt;Compost&lt;/b&gt; belongs in the shade."]


async def test_a_short_turn_has_nothing_folded(service: MemoryService) -> None:
    assert "<summary>All of it" not in await page_at(service, "/admin/ask?user=u1&q=when")


async def test_a_long_memory_that_was_left_out_is_cut(service: MemoryService, wire: FakeWire) -> None:
    wire.results["get_memory"] = {**LONG, "memory_id": "m2"}
    page = await page_at(service, "/admin/ask?user=u1&show=context&q=compost")
    assert len(shown(page, "<h2>Left out</h2>", "</ul>")) < 900


async def test_without_a_question_nothing_is_asked(service: MemoryService, wire: FakeWire) -> None:
    await page_at(service, "/admin/ask?user=u1&q=+")
    assert [record for record in wire.records if record["schema"] == "retrieve.v1"] == []


async def test_a_context_is_shown_by_section_with_what_was_left_out(service: MemoryService, wire: FakeWire) -> None:
    page = await page_at(service, "/admin/ask?user=u1&project=p1&show=context&q=fix+it&budget=1200")
    [asked] = [record for record in wire.records if record["schema"] == "assemble.v1"]
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


async def test_a_part_of_a_file_that_the_hit_shows_is_not_repeated(service: MemoryService, wire: FakeWire) -> None:
    parts = [
        {"memory_id": f"d{number}", "type": "document", "kind": None, "text": text, "score": 0.5}
        for number, text in enumerate(("The pump is old.", "The valve is new."))
    ]
    hit = HIT | {"text": "a.pdf [file: a.pdf, p. 3: The pump is old.]", "items": parts}
    wire.results["retrieve.v1"] = {"hits": [hit], "modes": ["code"], "strategy": "hybrid", "diagnostics": {}}
    page = await page_at(service, "/admin/ask?user=u1&project=p1&mode=code&q=when+does+it+run")
    assert "/admin/memories/d0" not in page
    assert re.search(r'href="/admin/memories/d1[^"]*">The valve is new\.</a> <span class="soft">part of a file<', page)
