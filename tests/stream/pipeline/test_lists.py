"""`list.v1` through the whole pipeline: what turns, commands and grants make of a list."""

import json
from pathlib import Path
from typing import Any

from agents.commands.admit import Admit
from schemas.state.policies import Policy
from streams.adapters.policy_file import PolicyFile
from tests.worlds.in_memory_pipeline import InMemoryPipeline

Json = dict[str, Any]


async def texts(pipeline: InMemoryPipeline, **fields: Any) -> list[str]:
    reply = await pipeline.list_page(**fields)
    assert reply["status"] == "ok", reply
    return [item["text"] for item in reply["result"]["items"]]


async def error(pipeline: InMemoryPipeline, **fields: Any) -> tuple[str, str]:
    failed = (await pipeline.list_page(**fields))["error"]
    return failed["code"], failed["field"]


async def test_own_write_is_listed_at_once(pipeline: InMemoryPipeline) -> None:
    for number in range(3):
        written = await pipeline.remember(f"Crate {number}", occurred_at=f"2026-03-01T10:0{number}:00Z")
        assert (await texts(pipeline, read_after=written.offset))[0] == f"Crate {number}"
    reply = await pipeline.list_page(limit=1)
    assert reply["warnings"] == []
    assert reply["result"]["total"] == 3
    assert await texts(pipeline, limit=2, cursor=reply["result"]["next"]) == ["Crate 1", "Crate 0"]


async def test_replaced_forgotten_and_moved_memories(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("The key is under the pot.", "t-1")
    await pipeline.remember("The lamp is in the cellar.", "t-2")
    await pipeline.remember("The key is with Ben.", "t-1")
    await pipeline.topics.settled()
    assert set(await texts(pipeline)) == {"The key is with Ben.", "The lamp is in the cellar."}
    assert await texts(pipeline, contains="pot") == []
    assert await texts(pipeline, embedding_status="pending") == []
    await pipeline.command("declare_mode", name="notes", embedder="general")
    lamp = pipeline.memory("The lamp is in the cellar.").memory_id
    await pipeline.command("set_memory_mode", memory_id=lamp, mode="notes")
    assert await texts(pipeline, mode="notes") == ["The lamp is in the cellar."]
    assert await texts(pipeline, mode="general") == ["The key is with Ben."]
    await pipeline.command("forget", memory_id=lamp)
    assert await texts(pipeline) == ["The key is with Ben."]
    assert (await pipeline.list_page("projects"))["result"]["items"][0]["memories"] == 1


async def test_texts_are_found_by_any_part_of_them(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("We moved to Kent.", "t-1", speaker="Ana")
    await pipeline.remember("Call renderTotal() in Größe 3.", "t-2", speaker="Ben", conversation_id="c2")
    await pipeline.remember("Никто не знает.", "t-3")
    await pipeline.topics.settled()
    for contained in ("ken", "TO KENT", "ved to", "."):
        assert "We moved to Kent." in await texts(pipeline, contains=contained)
    for contained in ("rendertotal()", "ERTOT", "größe", "GRÖSSE", " in "):
        assert await texts(pipeline, contains=contained) == ["Call renderTotal() in Größe 3."]
    assert await texts(pipeline, contains="знает") == ["Никто не знает."]
    assert await texts(pipeline, contains="moved cellar") == []
    assert (await pipeline.list_page("conversations", contains="rtota"))["result"]["total"] == 1


async def test_facets_count_what_is_listed(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("We moved to Kent.", "t-1", speaker="Ana")
    await pipeline.remember("Kent is green.", "t-2", speaker="Ben", conversation_id="c2")
    await pipeline.remember("The lamp is in the cellar.", "t-3", speaker="Ben")
    await pipeline.topics.settled()
    every = (await pipeline.list_page(facets=True, limit=1))["result"]
    assert every["facets"]["speaker"] == {"Ben": 2, "Ana": 1}
    assert every["facets"]["type"] == {"episodic": 3}
    assert sum(every["facets"]["mode"].values()) == 3
    narrowed = (await pipeline.list_page(facets=True, contains="kent"))["result"]["facets"]
    assert narrowed["speaker"] == {"Ana": 1, "Ben": 1}
    assert "facets" not in (await pipeline.list_page(facets=True, limit=1, cursor=every["next"]))["result"]


async def test_extracted_items_are_listed_where_the_types_leave_turns_out(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("We decided to deploy to fly.io.", conversation_id="c7")
    await pipeline.topics.settled()
    assert await texts(pipeline) == ["We decided to deploy to fly.io."]
    types = ["semantic", "procedural", "state_object", "document"]
    [item] = (await pipeline.list_page(types=types))["result"]["items"]
    assert item["type"] in types
    assert item["memory_id"] != pipeline.memory("We decided to deploy to fly.io.").memory_id
    assert await texts(pipeline, types=types, conversation_id="c7") == [item["text"]]
    assert await texts(pipeline, types=types, conversation_id="c8") == []


TOO_MANY = [f"p{number}" for number in range(1001)]

INVALID: list[tuple[Json, str, str]] = [
    ({"what": "secrets"}, "invalid_value", "what"),
    ({"limit": 0}, "invalid_value", "limit"),
    ({"limit": 501}, "invalid_value", "limit"),
    ({"order": "best"}, "invalid_value", "order"),
    ({"types": ["dream"]}, "invalid_value", "types.0"),
    ({"role": "king"}, "invalid_value", "role"),
    ({"embedding_status": "lost"}, "invalid_value", "embedding_status"),
    ({"since": "yesterday"}, "invalid_value", "since"),
    ({"contains": "x" * 40_000}, "too_large", "contains"),
    ({"cursor": "no cursor"}, "invalid_value", "cursor"),
    ({"cursor": 7}, "invalid_value", "cursor"),
    ({"read_after": -1}, "invalid_value", "read_after"),
    ({"mode": "never"}, "unknown_mode", "mode"),
    ({"scope": {"user_id": "*"}}, "selector_refused", "scope.user_id"),
    ({"scope": {"user_id": "u1", "team": "red"}}, "unknown_scope_field", "scope.team"),
    ({"scope": {"user_id": "u1", "project_id": TOO_MANY}}, "selector_refused", "scope.project_id"),
]


async def test_invalid_list_costs_its_sender_an_error_with_its_field(pipeline: InMemoryPipeline) -> None:
    for fields, code, field in INVALID:
        assert await error(pipeline, **fields) == (code, field), fields
    request = {"schema": "list.v1", "scope": {"user_id": "u1"}}
    missing = (await pipeline.ask(pipeline.names.retrieve, request))["error"]
    assert missing["code"] == "invalid_value"
    assert missing["field"] == "what"


async def test_cursor_of_another_user_opens_nothing(pipeline: InMemoryPipeline) -> None:
    for number in range(4):
        await pipeline.remember(f"Ana's secret {number}", user="ana")
        await pipeline.remember(f"Ben's note {number}", user="ben")
    await pipeline.topics.settled()
    for what in ("memories", "conversations"):
        theirs = (await pipeline.list_page(what, user="ana", limit=1))["result"]
        reply = await pipeline.list_page(what, user="ben", cursor=theirs["next"] or "AAAA")
        assert reply["error"]["code"] == "invalid_value"
        assert reply["error"]["field"] == "cursor"
        assert "secret" not in json.dumps(reply)
    assert sorted(await texts(pipeline, user="ben")) == [f"Ben's note {number}" for number in range(4)]


async def test_list_is_narrowed_to_what_its_sender_may_read(tmp_path: Path) -> None:
    grants = {
        "writer": [{"user_id": "u1"}],
        "reader": [{"user_id": "u1", "project_id": "p1", "may": ["read"]}],
        "blind": [{"user_id": "u1", "may": ["write"]}],
    }
    admit = Admit(PolicyFile(Policy.model_validate({"principals": grants})))

    async with InMemoryPipeline(tmp_path, admit=admit).running() as pipeline:
        for project in ("p1", "p2"):
            turn = {"schema": "turn.v1", "scope": {"user_id": "u1", "project_id": project}, "conversation_id": "c1"}
            said = {**turn, "role": "user", "content": f"In {project}"}
            await pipeline.ask(pipeline.names.turns, said, (("principal", b"writer"),))

        async def reply(principal: bytes, what: str, **fields: Any) -> Json:
            request = {"schema": "list.v1", "scope": {"user_id": "u1", "project_id": "*"}, "what": what, **fields}
            return await pipeline.ask(pipeline.names.retrieve, request, (("principal", principal),))

        for what in ("memories", "conversations", "projects"):
            assert (await reply(b"writer", what))["result"]["total"] == 2
            result = (await reply(b"reader", what))["result"]
            assert [item["scope"]["project_id"] for item in result["items"]] == ["p1"]
            assert result["total"] == 1
            assert (await reply(b"blind", what))["error"]["code"] == "not_allowed"
        other = {"scope": {"user_id": "u1", "project_id": "p2"}}
        assert (await reply(b"reader", "memories", **other))["error"]["code"] == "not_allowed"
