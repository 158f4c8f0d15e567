"""One memory's page: evidence, what superseded what, and what its forms send."""

import re
from html import unescape
from typing import Any

import pytest

from gateway.service.calls import Caller
from gateway.service.service import MemoryService
from schemas.state.policies import Grant
from tests.builders.records import Record, item_record, listed_memory, memory_record
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over, told_after, undone

TURN = "/admin/memories/m1?user=ana"
ITEM = "/admin/memories/i1?user=ana"

TEXT = "👍 So: we moved to Kent. <script>alert(1)</script>"
SPAN = (TEXT.index("we"), TEXT.index(" <"))


class Store:
    """Records behind a wire; a moved or edited one is so from then on."""

    def __init__(self, wire: FakeWire, *records: Record) -> None:
        self.records = {record["memory_id"]: record for record in records}
        projects = [{"scope": {"user_id": "ana", "project_id": "home"}}]
        wire.results["list.v1"] = {"items": projects, "next": None, "total": 1}
        wire.results["list_modes"] = {"modes": [{"name": "journal"}, {"name": "code"}]}
        wire.results["get_memory"] = lambda sent: self._with_stored_text(wire, sent["arguments"]["memory_id"])
        wire.results["set_memory_mode"] = self._move
        wire.results["retrieve.v1"] = {"hits": []}
        wire.results["forget"] = {"forgotten": 2}

    def _with_stored_text(self, wire: FakeWire, memory_id: str) -> Record:
        record = self.records[memory_id]
        return record | {"text": wire.stored.get(("ana", record["turn_id"]), record["text"])}

    def _move(self, sent: Record) -> Record:
        memory_id = sent["arguments"]["memory_id"]
        self.records[memory_id] = self.records[memory_id] | {"mode": sent["arguments"]["mode"]}
        return self.records[memory_id]


@pytest.fixture
def wire() -> FakeWire:
    return FakeWire()


@pytest.fixture
def store(wire: FakeWire) -> Store:
    evidence = [{"turn_id": "t-m1", "memory_id": "m1", "start": SPAN[0], "end": SPAN[1]}]
    return Store(wire, memory_record("m1", TEXT, items=["i1"]), item_record("i1", "We moved to Kent.", evidence))


def forms(page: str) -> dict[str, str]:
    return {name: unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', page)}


async def test_evidence_is_marked_in_its_source(wire: FakeWire, store: Store) -> None:
    async with pages_over(MemoryService(wire)) as http:
        item, turn = (await http.get(ITEM)).text, (await http.get(TURN)).text
    for page in (item, turn):
        assert "<mark>we moved to Kent.</mark>" in page
        assert "<script>alert" not in page
        assert "👍 So: " in page
    assert "/admin/memories/m1?user=ana" in item
    assert "/admin/memories/i1?user=ana" in turn
    assert "named by the caller" in turn
    assert "93.0 % sure" in turn
    assert "/admin/conversations/c1?user=ana&amp;of=home&amp;at=2026-03-01T09%3A30%3A00Z#m-m1" in turn


FILE = {
    "uri": f"file:{'0' * 64}",
    "media_type": "application/pdf",
    "sha256": "0" * 64,
    "text": None,
    "name": "report.pdf",
}


async def test_a_file_has_its_state_its_bytes_and_a_second_try(wire: FakeWire, store: Store) -> None:
    failed = FILE | {"status": "failed", "code": "unreadable", "error": "The file is broken."}
    store.records["m2"] = memory_record("m2", "The report.", resources=[failed])
    wire.results["retry_failed"] = {"processed": 1}
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/memories/m2?user=ana")).text
        again = await http.post("/admin/memories/m2?user=ana", data={"do": "retry"})
    assert f"/admin/files/{'0' * 64}?user=ana" in page
    assert "The file is broken." in page
    assert again.status_code == 303


async def test_the_turn_of_a_file_links_to_its_text(wire: FakeWire, store: Store) -> None:
    store.records["m2"] = memory_record("m2", "The report.", resources=[FILE | {"status": "ready"}])
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/memories/m2?user=ana")).text
    links = page.partition('<p class="links">')[2].partition("</p>")[0]
    assert ">Read report.pdf</a>" in links


async def test_a_part_of_a_file_shows_its_text_and_its_page(wire: FakeWire, store: Store) -> None:
    store.records["m2"] = memory_record("m2", "The report.", resources=[FILE | {"status": "ready"}])
    evidence = [{"turn_id": "t-m2", "memory_id": "m2", "resource": FILE["uri"], "page": 3, "start": 9000, "end": 9010}]
    store.records["i2"] = item_record("i2", "The pump is old.", evidence)
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/memories/i2?user=ana")).text
    assert "report.pdf, p. 3" in page
    assert "<mark>The pump is old.</mark>" in page


async def test_the_chain_shows_what_it_replaced_and_what_stands(wire: FakeWire, store: Store) -> None:
    for number, (text, successor) in enumerate([("Leeds", "b"), ("York", "c"), ("Kent", "d"), ("Rye", None)]):
        memory_id = "abcd"[number]
        store.records[memory_id] = item_record(memory_id, f"lives in {text}", [], superseded_by=successor)
    store.records["x"] = item_record("x", "likes Hull", [], superseded_by="y")

    def hits(sent: Record) -> Record:
        ids = ["a", "b", "c", "x", "d"] if sent["include_superseded"] else ["d"]
        return {"hits": [listed_memory(memory_id) | {"score": 0.5} for memory_id in ids]}

    wire.results["retrieve.v1"] = hits
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/memories/c?user=ana")).text
    chain = page[page.index('class="chain"') :]
    places = [chain.index(text) for text in ("lives in Leeds", "lives in York", "This memory", "lives in Rye")]
    assert places == sorted(places)
    assert "likes Hull" not in page
    assert "Current: " in page


async def test_a_move_can_be_undone(wire: FakeWire, store: Store) -> None:
    async with pages_over(MemoryService(wire)) as http:
        moved = await http.post(TURN, data={"do": "move", "mode": "code"})
        assert moved.status_code == 303
        back = await undone(http, moved)
        assert await told_after(http, back) == "Moved to journal."
    sent = [record for record in wire.records if record.get("command") == "set_memory_mode"]
    assert [record["arguments"] for record in sent] == [
        {"memory_id": "m1", "mode": "code"},
        {"memory_id": "m1", "mode": "journal"},
    ]
    assert {record["scope"]["project_id"] for record in sent} == {"home"}


async def test_an_edit_is_a_turn_and_its_undo_restores_the_very_text(wire: FakeWire, store: Store) -> None:
    before = ' "two"\r\nlines\n\n '
    store.records["m1"] = memory_record("m1", before, metadata={"a": 1})
    async with pages_over(MemoryService(wire)) as http:
        known = forms((await http.get(TURN)).text)
        edit = {"do": "edit", "text": "new\r\ntext ", "text_hash": known["text_hash"]}
        edited = await http.post(TURN, data=edit)
        restored = await undone(http, edited)
        assert await told_after(http, restored) == "Restored the previous text."
    turns = [record for topic, record, _ in wire.sent if topic == "turns"]
    assert [turn["content"] for turn in turns] == ["new\ntext ", before]
    assert {(turn["turn_id"], turn["conversation_id"], turn["metadata"]["a"]) for turn in turns} == {("t-m1", "c1", 1)}


async def test_an_edit_of_another_text_than_was_shown_is_a_conflict(wire: FakeWire, store: Store) -> None:
    async with pages_over(MemoryService(wire)) as http:
        answer = await http.post(TURN, data={"do": "edit", "text": "new", "text_hash": "of an older text"})
        again = await http.post(TURN, data={"do": "edit", "text": TEXT, "text_hash": "of an older text"})
    assert answer.status_code == 409
    assert again.status_code == 303
    assert not [topic for topic, _, _ in wire.sent if topic == "turns"]


async def test_a_correction_is_sent(wire: FakeWire, store: Store) -> None:
    async with pages_over(MemoryService(wire)) as http:
        answer = await http.post(TURN, data={"do": "correct", "interaction_mode": "DEBUGGING"})
    assert answer.status_code == 303
    [sent] = [record for record in wire.records if record.get("command") == "set_interaction_mode"]
    assert sent["arguments"] == {"memory_id": "m1", "interaction_mode": "DEBUGGING"}


async def test_forgetting_asks_with_what_derives_from_it(wire: FakeWire, store: Store) -> None:
    elsewhere = {"turn_id": "t-m2", "memory_id": "m2", "start": 0, "end": 2}
    store.records["i2"] = item_record("i2", "Kent is green.", [*store.records["i1"]["evidence"], elsewhere])
    store.records["m1"]["items"] = ["i1", "i2"]
    async with pages_over(MemoryService(wire)) as http:
        asked = (await http.get("/admin/memories/m1/forget?user=ana")).text
        assert "can't be undone" in unescape(asked)
        assert "is forgotten with it" in asked
        assert "stays: 1 other turn says it too" in asked
        assert not [record for record in wire.records if record.get("command") == "forget"]
        done = await http.post("/admin/memories/m1/forget?user=ana")
    assert done.headers["location"] == "/admin/memories?user=ana"
    [sent] = [record for record in wire.records if record.get("command") == "forget"]
    assert sent["scope"]["project_id"] == "home"
    assert sent["arguments"] == {"memory_id": "m1"}


async def test_similar_ones_are_searched_in_its_mode_without_the_text_in_an_address(
    wire: FakeWire, store: Store
) -> None:
    hits: list[Record] = [
        listed_memory("m1") | {"score": 1.0},
        listed_memory("m5", "Near Kent") | {"score": 0.71, "conversation_id": "c2"},
    ]
    hits.append(listed_memory("m6", "Beside it") | {"score": 0.9})
    wire.results["retrieve.v1"] = {"hits": hits}
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get(TURN + "&similar=1")).text
    assert "Near Kent" in page
    assert "Beside it" not in page, "neighbours of the same conversation are always alike"
    [sent] = [record for record in wire.records if record["schema"] == "retrieve.v1"]
    assert sent["mode"] == "journal"
    assert sent["query"] == TEXT


async def test_a_reader_gets_no_forms_and_a_foreign_user_nothing(wire: FakeWire, store: Store) -> None:
    grants = (Grant.model_validate({"user_id": "ana", "may": ["read"]}),)
    async with pages_over(MemoryService(wire), Caller("k", "reader", grants=grants)) as http:
        page = (await http.get(TURN)).text
        assert "we moved to Kent." in page
        assert "<h2>Change</h2>" not in page
        assert (await http.post(TURN, data={"do": "move", "mode": "code"})).status_code == 403
        assert (await http.post("/admin/memories/m1/forget?user=ana")).status_code == 403
    async with pages_over(MemoryService(wire), Caller("k", own_user="ben")) as http:
        assert (await http.get(TURN)).status_code == 403
    assert not [record for record in wire.records if record.get("command") in ("set_memory_mode", "forget")]


async def test_fields_that_a_turn_may_have_are_shown(wire: FakeWire, store: Store) -> None:
    fields: dict[str, Any] = {
        "resources": [{"uri": "s3://<b>/a.png", "media_type": "image/png", "sha256": None, "text": "a caption"}],
        "metadata": {"ticket": "<OPS>"},
        "importance": 0.8,
        "embedding": {"status": "failed", "embedded_at": None, "error": "no such model"},
        "interaction_mode": None,
    }
    store.records["m1"] = memory_record("m1", TEXT, **fields)
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get(TURN)).text
    for shown in ("s3://<b>/a.png", "a caption", '"ticket": "<OPS>"', "0.80", "no such model", "not decided yet"):
        assert shown in unescape(page)
    assert "<b>" not in page


async def test_a_filtered_memory_says_so_and_is_filtered_by_a_form(wire: FakeWire, store: Store) -> None:
    own = {"searchable": True, "private": False}
    store.records["m1"] |= {"searchable": False, "private": True, "own_visibility": own}
    wire.results["set_memory_visibility"] = {}
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get(TURN)).text
        answer = await http.post(TURN, data={"do": "filter", "private": "1"})
    assert "Hidden: no search finds it, as its mode is hidden" in page
    assert "as its mode is private" in page
    assert answer.status_code == 303
    [sent] = [record for record in wire.records if record.get("command") == "set_memory_visibility"]
    assert sent["arguments"] == {"memory_id": "m1", "searchable": True, "private": True}
