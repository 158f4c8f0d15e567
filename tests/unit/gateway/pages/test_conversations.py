"""Conversations: the list, one as it was said, and forgetting one."""

from html import unescape
from typing import Any

import pytest

from gateway.service.calls import Caller
from gateway.service.service import MemoryService
from tests.builders.records import Record, listed_memory
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over

PAGE = "/admin/conversations?user=ana"
ONE = "/admin/conversations/c%2F1?user=ana"
FORGET = "/admin/conversations/c%2F1/forget?user=ana"


def conversation(project: str = "home", **fields: Any) -> Record:
    return {
        "conversation_id": "c/1",
        "scope": {"user_id": "ana", "project_id": project},
        "turns": 40,
        "first": "2026-03-01T09:00:00Z",
        "last": "2026-03-01T10:00:00Z",
        "speakers": ["Ana", "Ben"],
        "modes": {"journal": 38, "code": 2},
    } | fields


class Conversations:
    def __init__(self, wire: FakeWire) -> None:
        self.found = [conversation()]
        self.turns = [
            listed_memory("m1", "First <script>alert(1)</script>", conversation_id="c/1"),
            listed_memory("m2", "Second", conversation_id="c/1", superseded_by="s1"),
        ]
        wire.results["list.v1"] = self._list
        wire.results["forget"] = {"forgotten": 47}

    def _list(self, sent: Record) -> Record:
        items = {"conversations": self.found, "memories": self.turns, "projects": []}[sent["what"]]
        if sent.get("order") == "newest":
            items = items[::-1]
        return {"items": items, "next": None, "total": len(items)}


@pytest.fixture
def wire() -> FakeWire:
    wire = FakeWire()
    wire.results["list_files"] = {"files": [], "total": 0, "counts": {"pending": 0, "ready": 0, "failed": 0}}
    return wire


@pytest.fixture
def known(wire: FakeWire) -> Conversations:
    return Conversations(wire)


def lists(wire: FakeWire, what: str) -> list[Record]:
    return [record for record in wire.records if record.get("what") == what]


async def test_conversations_are_listed_with_their_modes(wire: FakeWire, known: Conversations) -> None:
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get(PAGE + "&text=kent&mode=journal")).text
    assert "/admin/conversations/c%2F1?user=ana&amp;mode=journal&amp;of=home" in page
    assert "Ana, Ben" in page
    [sent] = lists(wire, "conversations")
    assert sent["contains"] == "kent"
    assert sent["mode"] == "journal"


async def test_turns_are_shown_oldest_first_as_texts(wire: FakeWire, known: Conversations) -> None:
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get(ONE)).text
    assert "<script>alert" not in page
    assert "First <script>alert(1)</script>" in unescape(page)
    assert "/admin/memories/s1" in page
    assert 'id="m-m2"' in page
    [sent] = lists(wire, "memories")
    expected = {"conversation_id": "c/1", "order": "oldest", "include_superseded": True, "mode": "*"}
    assert {name: sent[name] for name in expected} == expected


async def test_a_conversation_of_one_minute_has_one_time(wire: FakeWire, known: Conversations) -> None:
    known.found = [conversation(last="2026-03-01T09:00:10Z")]
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get(ONE)).text
    assert "</time> to <time" not in " ".join(page.split())


async def test_a_place_is_shown_with_what_came_before(wire: FakeWire, known: Conversations) -> None:
    at = "2026-03-01T09:30:00Z"
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get(f"{ONE}&at={at}")).text
    assert {(asked.get("since"), asked.get("until"), asked["order"]) for asked in lists(wire, "memories")} == {
        (at, None, "oldest"),
        (None, at, "newest"),
    }
    assert "From the beginning" in page


async def test_a_conversation_is_forgotten_only_with_its_number_of_turns(wire: FakeWire, known: Conversations) -> None:
    async with pages_over(MemoryService(wire)) as http:
        assert "Type 40" in (await http.get(FORGET)).text
        assert "Nothing was forgotten" in (await http.post(FORGET, data={"typed": "38"})).text
        assert not [record for record in wire.records if record.get("command") == "forget"]
        done = await http.post(FORGET, data={"typed": "40"})
    assert done.headers["location"] == "/admin/conversations?user=ana"
    [sent] = [record for record in wire.records if record.get("command") == "forget"]
    assert sent["scope"] == {"user_id": "ana", "project_id": "home"}
    assert sent["arguments"] == {"conversation_id": "c/1"}


async def test_of_several_projects_one_is_chosen_before_forgetting(wire: FakeWire, known: Conversations) -> None:
    known.found = [conversation(), conversation("work")]
    async with pages_over(MemoryService(wire)) as http:
        assert "/admin/conversations/c%2F1/forget?user=ana&amp;project=work" in (await http.get(ONE)).text
        assert (await http.post(FORGET, data={"typed": "40"})).status_code == 422
    assert not [record for record in wire.records if record.get("command") == "forget"]


async def test_what_is_not_there_is_not_found_and_foreign_users_are_refused(
    wire: FakeWire, known: Conversations
) -> None:
    known.found = []
    async with pages_over(MemoryService(wire)) as http:
        assert (await http.get(ONE)).status_code == 404
        assert "no conversations yet" in (await http.get(PAGE)).text
    async with pages_over(MemoryService(wire), Caller("k", own_user="ben")) as http:
        assert (await http.get(ONE)).status_code == 403
        assert (await http.post(FORGET, data={"typed": "40"})).status_code == 403


async def test_a_conversation_of_one_project_leaves_the_project_in_the_head_as_it_was(
    wire: FakeWire, known: Conversations
) -> None:
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get(ONE + "&of=home")).text
    asked = [*lists(wire, "conversations"), *lists(wire, "memories")]
    assert {request["scope"]["project_id"] for request in asked} == {"home"}
    assert '"/admin/consolidations?user=ana"' in page
