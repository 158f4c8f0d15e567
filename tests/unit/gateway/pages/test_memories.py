"""The list of memories: what is shown, and what is sent when ticked ones are moved or forgotten."""

import json
from html import unescape
from typing import Any

import pytest
from modestream_client.failures import MemoryServiceError

from gateway.pages.requests import Form
from gateway.pages.routes.memories import Choice, chosen
from gateway.service.calls import Caller, Refused
from gateway.service.service import MemoryService
from schemas.state.policies import Grant
from tests.builders.records import listed_memory, memory_record
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over, told_after, undone

PAGE = "/admin/memories?user=ana"


def choice(memory_id: str, mode: str = "journal", project: str = "home") -> str:
    return json.dumps([memory_id, mode, {"project_id": project}])


@pytest.fixture
def wire() -> FakeWire:
    wire = FakeWire()
    memories = [
        listed_memory("m1", "We moved to <script>alert(1)</script> Kent."),
        listed_memory("m2", "Long. " * 200, superseded_by="m3", speaker=None),
    ]
    wire.results["list.v1"] = lambda record: {
        "items": memories if record["what"] == "memories" else [],
        "next": "abc",
        "total": 1234,
    }
    wire.results["set_memory_mode"] = lambda record: {"moved": len(record["arguments"]["memory_ids"])}
    wire.results["forget"] = {"forgotten": 2}
    wire.results["get_memory"] = lambda record: memory_record(record["arguments"]["memory_id"], "Text to be forgotten")
    return wire


def commands(wire: FakeWire, name: str) -> list[dict[str, Any]]:
    return [record for record in wire.records if record.get("command") == name]


async def test_texts_are_shown_as_texts_and_cut(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get(PAGE)).text
    assert "<script>alert" not in page
    assert "<script>alert(1)</script> Kent." in unescape(page)
    assert "1,234 memories, 2 on this page" in page
    assert "superseded" in page
    assert "Long. " * 200 not in page
    assert "cursor=abc&amp;trail=0" in page


async def test_filters_are_a_list_record(wire: FakeWire) -> None:
    query = "&mode=journal&project=home&types=semantic&role=user&since=2026-03-01&until=2026-03-01"
    more = "&text=kent&embedding_status=failed&conversation_id=c1&order=oldest&include_superseded=true&limit=25"
    more += "&speaker=Ana&metadata=ticket%3D7"
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get(PAGE + query + more)).text
    record = next(record for record in wire.records if record.get("what") == "memories")
    assert record["scope"] == {"user_id": "ana", "project_id": "home"}
    expected = {
        "mode": "journal",
        "types": ["semantic"],
        "role": "user",
        "since": "2026-03-01T00:00:00Z",
        "until": "2026-03-02T00:00:00Z",
        "contains": "kent",
        "embedding_status": "failed",
        "conversation_id": "c1",
        "order": "oldest",
        "include_superseded": True,
        "filters": {"speaker": "Ana", "metadata": {"ticket": ["7", 7]}},
        "limit": 25,
    }
    assert {name: record[name] for name in expected} == expected
    assert '<input type="hidden" name="text" value="kent">' in page, "another mode is picked with the same filters"


async def test_ticked_ones_move_with_one_command_a_scope_and_can_be_moved_back(wire: FakeWire) -> None:
    ticked = [choice("m1"), choice("m2", "code"), choice("m3", project="work"), choice("m4", "new")]
    async with pages_over(MemoryService(wire)) as http:
        moved = await http.post(PAGE, data={"do": "move", "mode": "new", "selected": ticked})
        sent = [(command["scope"]["project_id"], command["arguments"]) for command in commands(wire, "set_memory_mode")]
        assert sent == [
            ("home", {"memory_ids": ["m1", "m2"], "mode": "new"}),
            ("work", {"memory_ids": ["m3"], "mode": "new"}),
        ]
        wire.sent.clear()
        back = await undone(http, moved)
        assert await told_after(http, back) == "Moved 3 memories back."
    sent = [(command["scope"]["project_id"], command["arguments"]) for command in commands(wire, "set_memory_mode")]
    assert sent == [
        ("home", {"memory_ids": ["m1"], "mode": "journal"}),
        ("work", {"memory_ids": ["m3"], "mode": "journal"}),
        ("home", {"memory_ids": ["m2"], "mode": "code"}),
    ]


async def test_forgetting_asks_first_with_count_and_texts(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        asked = await http.post(PAGE, data={"do": "ask", "selected": [choice("m1"), choice("m2")]})
        assert "Forget 2 memories?" in asked.text
        assert "Text to be forgotten" in asked.text
        assert commands(wire, "forget") == []
        done = await http.post(PAGE, data={"do": "forget", "selected": [choice("m1"), choice("m2", project="work")]})
    assert done.status_code == 303
    sent = {(command["scope"]["project_id"], command["arguments"]["memory_id"]) for command in commands(wire, "forget")}
    assert sent == {("home", "m1"), ("work", "m2")}


async def test_many_are_forgotten_only_with_their_number_typed(wire: FakeWire) -> None:
    ticked = [choice(f"m{number}") for number in range(12)]
    async with pages_over(MemoryService(wire)) as http:
        for typed in ("", "11"):
            asked = await http.post(PAGE, data={"do": "forget", "selected": ticked, "typed": typed})
            assert "Forget 12 memories?" in asked.text
        assert commands(wire, "forget") == []
        await http.post(PAGE, data={"do": "forget", "selected": ticked, "typed": "12"})
    assert len(commands(wire, "forget")) == 12


async def test_what_fails_costs_the_others_nothing_and_is_told(wire: FakeWire) -> None:
    def forget(record: dict[str, Any]) -> dict[str, Any]:
        if record["arguments"]["memory_id"] == "m2":
            raise MemoryServiceError("conflict", "it is being rebuilt", None)
        return {"forgotten": 1}

    wire.results["forget"] = forget
    async with pages_over(MemoryService(wire)) as http:
        done = await http.post(PAGE, data={"do": "forget", "selected": [choice("m1"), choice("m2"), choice("m3")]})
        told = await told_after(http, done)
    assert told == "Forgot 2 memories. 1 memory could not be changed: it is being rebuilt."


@pytest.mark.parametrize(
    "form",
    [
        {"do": "move", "mode": "new"},
        {"do": "move", "mode": "new", "selected": "m1"},
        {"do": "move", "mode": "new", "selected": '["m1", "journal", {"project_id": 7}]'},
        {"do": "forget", "selected": '["m1", "journal", {"user_id": "ben", "project_id": "home"}]'},
        {"do": "move", "selected": choice("m1")},
        {"do": "burn", "selected": choice("m1")},
    ],
)
async def test_a_form_that_is_none_of_ours_changes_nothing(wire: FakeWire, form: dict[str, str]) -> None:
    async with pages_over(MemoryService(wire)) as http:
        assert (await http.post(PAGE, data=form)).status_code == 422
    assert wire.sent == []


async def test_a_selection_is_bounded(wire: FakeWire) -> None:
    ticked = [choice(f"m{number}") for number in range(501)]
    async with pages_over(MemoryService(wire)) as http:
        answer = await http.post(PAGE, data={"do": "move", "mode": "new", "selected": ticked})
    assert answer.status_code == 413
    assert wire.sent == []


async def test_foreign_users_and_mere_readers_are_refused(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire), Caller("k", own_user="ben")) as http:
        assert (await http.get(PAGE)).status_code == 403
        assert (await http.post(PAGE, data={"do": "forget", "selected": choice("m1")})).status_code == 403
    reader = Caller("k", "reader", grants=(Grant.model_validate({"user_id": "ana", "may": ["read"]}),))
    async with pages_over(MemoryService(wire), reader) as http:
        assert (await http.post(PAGE, data={"do": "forget", "selected": choice("m1")})).status_code == 403
    assert wire.sent == []


async def test_an_empty_list_says_what_to_do(wire: FakeWire) -> None:
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    async with pages_over(MemoryService(wire)) as http:
        assert "ana has no memories yet" in (await http.get(PAGE)).text
        assert "Show all modes and projects" in (await http.get(PAGE + "&mode=code")).text


FIELDS = frozenset({"project_id"})


def test_value_of_a_box_is_read_as_its_choice() -> None:
    choice = Choice("m1", "größe\u2028", {"project_id": '"x"'})
    assert chosen(Form({"selected": [choice.value]}), FIELDS) == [choice]


@pytest.mark.parametrize("value", ["[" * 100_000, '["m1", "\ud800", {}]', '["m1", "\\ud800", {}]', "[1, 2, {}]", "{"])
def test_value_that_is_no_choice_is_refused(value: str) -> None:
    with pytest.raises(Refused):
        chosen(Form({"selected": [value]}), FIELDS)


async def test_facets_narrow_the_list(wire: FakeWire) -> None:
    facets = {"mode": {"journal": 3, "code": 2}, "speaker": {"Ana": 5}, "type": {"episodic": 5}}
    facets["conversation"] = {"c<1>": 3, "c2": 2}
    listed = {"items": [listed_memory()], "next": None, "total": 5, "facets": facets}
    wire.results["list.v1"] = lambda record: listed if record["what"] == "memories" else {"items": [], "next": None}
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get(PAGE + "&order=oldest")).text
        narrowed = (await http.get(PAGE + "&conversation_id=c2")).text
    assert "conversation_id=c%3C1%3E" in page
    assert "mode=code" in page
    assert "speaker=Ana&amp;" not in page.partition("<table")[0]
    assert "conversation_id=c%3C1%3E" not in narrowed
    assert 'aria-sort="ascending"' in page


async def test_ticked_memories_are_exported_as_their_turns(wire: FakeWire) -> None:
    fact = memory_record("m2", "A fact.", origin="extracted")
    resource = {"uri": "file:x", "media_type": "text/plain", "status": "ready", "parts": 2}
    said = memory_record("m1", "We moved to Kent.", resources=[resource])
    wire.results["get_memory"] = lambda record: said if record["arguments"]["memory_id"] == "m1" else fact
    async with pages_over(MemoryService(wire)) as http:
        form = {"do": "export", "selected": [choice("m1"), choice("m2")]}
        exported = await http.post(PAGE, data=form)
    [turn] = [json.loads(line) for line in exported.text.splitlines()]
    assert turn["schema"] == "turn.v1"
    assert turn["content"] == "We moved to Kent."
    assert turn["resources"] == [{"uri": "file:x", "media_type": "text/plain"}]
