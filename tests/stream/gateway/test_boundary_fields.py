"""A boundary of two fields over HTTP: paths, keys and MCP name a user by its canonical string."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from modestream_client.calls import MemoryCalls
from modestream_client.http.client import HttpTransport
from starlette.routing import BaseRoute

from agents.commands.admit import Admit
from gateway.http.identity import OpenCallers
from gateway.pages.app import page_routes
from gateway.pages.sign_in import Sessions, SignIn
from gateway.service.boundaries import Boundaries
from gateway.service.service import MemoryService
from schemas.state.policies import policy_of
from streams.adapters.policy_file import PolicyFile
from streams.flow.background import boundaries as background
from tests.worlds.guarded_gateway import UNLIMITED, GuardedGateway, gateway_of, write_keys
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.tenants import TENANTS, Json, member, pipeline_of, tenant

MISSING = "00000000-0000-5000-8000-000000000000"
"""The id of no memory."""

READ_PATHS = ("/memories", "/conversations", "/projects", "/modes", "/intention", "/categories", "/map", "/export")
"""What shows something of a user without a question."""

A, B = "/v1/users/acme%2Fa", "/v1/users/globex%2Fa"
"""The paths of two users of one name."""

POLICY = policy_of(TENANTS).model_validate(
    {
        "principals": {
            "root": [{"organization_id": "*", "user_id": "*"}],
            "acme": [{"organization_id": "acme", "user_id": "*"}],
            "of_all": [{"organization_id": "*", "user_id": "a", "may": ["read"]}],
            "named": [{"organization_id": ["acme", "globex"], "user_id": "a", "project_id": "p1"}],
        }
    }
)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PUBLISH_INTERVAL_S", 0.01)


def pages(service: MemoryService) -> Sequence[BaseRoute]:
    return page_routes(service, TENANTS, SignIn(OpenCallers(), None, Sessions(b"a secret of thirty-two characters")))


@asynccontextmanager
async def running(
    directory: Path, keys: Path | None = None
) -> AsyncIterator[tuple[GuardedGateway, InMemoryPipeline, Boundaries]]:
    """Run a gateway with its pages in front of a pipeline; with a file of keys both know the grants."""
    boundaries = Boundaries(fields=TENANTS.boundary_fields)
    admit = Admit(None if keys is None else PolicyFile(POLICY))
    async with (
        pipeline_of(directory, admit=admit).running() as pipeline,
        gateway_of(pipeline, keys, UNLIMITED, POLICY, boundaries, pages) as gateway,
    ):
        yield gateway, pipeline, boundaries


async def stored(gateway: GuardedGateway, path: str, text: str, key: str | None = None, **more: Any) -> Json:
    turn = {"conversation_id": "c1", "role": "user", "content": text, **more}
    answer = await gateway.ask("POST", f"{path}/turns", key, json=turn)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def found(gateway: GuardedGateway, path: str, key: str | None = None, **more: Any) -> list[str]:
    """Return the texts of the hits about kettles."""
    answer = await gateway.ask("POST", f"{path}/memories/search", key, json={"query": "kettle", **more})
    assert answer.status_code == 200, answer.text
    return [hit["text"] for hit in answer.json()["hits"]]


async def follow(pipeline: InMemoryPipeline, boundaries: Boundaries, count: int) -> None:
    """Fill what the gateway knows of users from the topic, until it knows so many."""

    def is_known() -> bool:
        for record in pipeline.topics.records(pipeline.names.boundaries):
            boundaries.apply(record.key, record.value)
        return int(boundaries.totals()["memories"]) >= count

    await pipeline.until(is_known)


async def test_users_of_one_name_see_nothing_of_each_other(tmp_path: Path) -> None:
    async with running(tmp_path) as (gateway, pipeline, _):
        mine = await stored(gateway, A, "The kettle of acme is blue.", turn_id="t-1")
        theirs = await stored(gateway, B, "The kettle of globex is red.", turn_id="t-1")
        assert mine["memory_id"] != theirs["memory_id"]
        assert await found(gateway, A) == ["The kettle of acme is blue."]
        assert await found(gateway, B, read_after=theirs["read_after"]) == ["The kettle of globex is red."]
        over_kafka = await member(pipeline, "acme", "a").retrieve("kettle")
        assert [hit.text for hit in over_kafka.hits] == ["The kettle of acme is blue."]
        await gateway.ask("PUT", f"{A}/modes/diary", json={"embedder": "tiny32"})
        await gateway.ask("PUT", f"{A}/intention", json={"goals": ["furnish acme"]})
        for path in READ_PATHS:
            answer = await gateway.ask("GET", f"{B}{path}")
            assert answer.status_code == 200, answer.text
            assert "acme" not in answer.text, path
            assert "diary" not in answer.text, path
        attempts: list[tuple[str, Json]] = [("GET", {}), ("PATCH", {"json": {"text": "mine now"}}), ("DELETE", {})]
        for method, how in attempts:
            answers = [
                await gateway.ask(method, f"{B}/memories/{memory_id}", **how)
                for memory_id in (mine["memory_id"], MISSING)
            ]
            assert answers[0].status_code == answers[1].status_code
        context = await gateway.ask("POST", f"{B}/contexts", json={"query": "kettle", "pins": [mine["memory_id"]]})
        assert "acme" not in context.text
        assert await found(gateway, A) == ["The kettle of acme is blue."]


async def test_export_of_one_user_is_an_import(tmp_path: Path) -> None:
    async with running(tmp_path) as (gateway, pipeline, _):
        await stored(gateway, A, "The kettle is blue.", project_id="p1", turn_id="t-1")
        [line] = (await gateway.ask("GET", f"{A}/export")).text.splitlines()
        turn = json.loads(line)
        assert turn["scope"] == {**tenant("acme", "a"), "project_id": "p1"}
        again = await pipeline.ask(pipeline.names.turns, turn, key=b"acme/a")
        assert again["result"]["duplicate"] is True


async def test_forgetting_one_user_needs_its_name_and_leaves_the_other(tmp_path: Path) -> None:
    async with running(tmp_path) as (gateway, _, _):
        await stored(gateway, A, "The kettle of acme is blue.")
        await stored(gateway, B, "The kettle of globex is red.")
        for confirm in ("a", "acme", "globex/a"):
            assert (await gateway.ask("DELETE", A, params={"confirm": confirm})).status_code == 422
        forgotten = await gateway.ask("DELETE", A, params={"confirm": "acme/a"})
        assert forgotten.status_code == 200
        assert forgotten.json()["forgotten"] > 0
        assert await found(gateway, A) == []
        assert await found(gateway, B) == ["The kettle of globex is red."]


REQUESTS: list[tuple[str, str, Json]] = [
    ("POST", "/turns", {"json": {"conversation_id": "c1", "role": "user", "content": "x"}}),
    ("POST", "/memories/search", {"json": {"query": "x"}}),
    ("GET", "/memories", {}),
    ("GET", "/health", {}),
    ("GET", "/runs", {}),
    ("GET", "/events", {}),
    ("POST", "/jobs/reconcile", {}),
    ("POST", "/consolidations", {}),
]
"""A request of each kind about a user."""


async def test_what_names_no_boundary_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as (gateway, _, _):
        for name in ("a", "acme", "acme%2Fa%2Fb", "acme%2F", "%2Fa", "acme%2F%2541"):
            for method, rest, how in REQUESTS:
                answer = await gateway.ask(method, f"/v1/users/{name}{rest}", **how)
                assert answer.status_code == 422, (method, rest)
                assert answer.json()["code"] == "invalid_value", (method, rest)
                assert "organization_id/user_id" in answer.json()["detail"]
        assert gateway.wire.sent == []


async def test_names_are_encoded_twice_where_values_have_slashes(tmp_path: Path) -> None:
    async with running(tmp_path) as (gateway, pipeline, _):
        first, second = "/v1/users/a%252Fb%2Fc", "/v1/users/a%2Fb%252Fc"
        await stored(gateway, first, "The kettle is blue.")
        await stored(gateway, second, "The kettle is red.")
        assert await found(gateway, first) == ["The kettle is blue."]
        over_kafka = await member(pipeline, "a", "b/c").retrieve("kettle")
        assert [hit.text for hit in over_kafka.hits] == ["The kettle is red."]


async def test_place_of_another_user_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as (gateway, _, _):
        places = {}
        for number in range(8):
            path = f"/v1/users/acme%2Fu{number}"
            places[path] = (await stored(gateway, path, "The kettle is blue."))["read_after"]
        path, place = next(iter(places.items()))
        foreign = next(each for each in places.values() if each.partition(":")[0] != place.partition(":")[0])
        assert await found(gateway, path, read_after=place) == ["The kettle is blue."]
        asked = {"query": "kettle", "read_after": foreign}
        answer = await gateway.ask("POST", f"{path}/memories/search", json=asked)
        assert answer.status_code == 422
        assert answer.json()["field"] == "read_after"


async def test_users_are_listed_by_what_a_key_may_see(tmp_path: Path) -> None:
    write_keys(tmp_path / "keys.json", *POLICY.principals)
    async with running(tmp_path, tmp_path / "keys.json") as (gateway, pipeline, boundaries):
        names = ["acme/a", "acme/b", "acme2/a", "globex/a", "globex/b"]
        for name in names:
            path = "/v1/users/" + name.replace("/", "%2F")
            await stored(gateway, path, "The kettle is blue.", "root", project_id="p1")
        await follow(pipeline, boundaries, len(names))

        async def listed(key: str, **query: Any) -> list[str]:
            answer = await gateway.ask("GET", "/v1/users", key, params=query)
            totals = (await gateway.ask("GET", "/v1/deployment", key)).json()
            shown = [item["boundary"] for item in answer.json()["items"]]
            assert query or totals["boundaries"] == len(shown)
            return shown

        assert await listed("root") == names
        assert await listed("root", prefix="acme/") == ["acme/a", "acme/b"]
        assert await listed("root", prefix="acme") == ["acme/a", "acme/b", "acme2/a"]
        assert await listed("acme") == ["acme/a", "acme/b"]
        assert await listed("of_all") == ["acme/a", "acme2/a", "globex/a"]
        assert await listed("named") == ["acme/a", "globex/a"]
        assert await listed("named", prefix="globex/") == ["globex/a"]
        assert await listed("named", prefix="acme/b") == []
        assert (await gateway.ask("GET", f"{B}/memories", "acme")).status_code == 403
        assert (await gateway.ask("GET", "/v1/users/acme/memories", "acme")).status_code == 403
        assert await found(gateway, B, "named", project_id="p1") == ["The kettle is blue."]
        assert (await gateway.ask("DELETE", B, "named", params={"confirm": "globex/a"})).status_code == 403
        assert (await gateway.ask("GET", "/v1/deployment", "root")).json()["vector_index"] is not None


async def test_own_user_of_a_key_is_a_boundary(tmp_path: Path) -> None:
    write_keys(tmp_path / "keys.json", "root", user_id="acme/a")
    async with running(tmp_path, tmp_path / "keys.json") as (gateway, _, _):
        assert await stored(gateway, A, "The kettle is blue.", "root")
        for path in (B, "/v1/users/acme%2Fb", "/v1/users/a"):
            assert (await gateway.ask("GET", f"{path}/memories", "root")).status_code == 403
        asked: Json = {"name": "search_memory", "arguments": {"query": "kettle"}}
        assert "The kettle is blue." in (await gateway.mcp("tools/call", "root", "/mcp", **asked)).text
        assert "The kettle is blue." in (await gateway.mcp("tools/call", "root", "/mcp/users/acme%2Fa", **asked)).text
        assert (await gateway.mcp("tools/list", "root", "/mcp/users/globex%2Fa")).status_code == 403


async def test_pages_show_one_user_of_an_organization(tmp_path: Path) -> None:
    async with running(tmp_path) as (gateway, pipeline, boundaries):
        mine = await stored(gateway, A, "The kettle of acme is blue.")
        await follow(pipeline, boundaries, 1)
        assert "The kettle of acme is blue." in (await gateway.ask("GET", "/admin/memories")).text, "the only user"
        await stored(gateway, B, "The kettle of globex is red.")
        await follow(pipeline, boundaries, 2)
        overview = (await gateway.ask("GET", "/admin")).text
        assert 'href="/admin?user=acme%2Fa"' in overview
        shown = (await gateway.ask("GET", "/admin/memories?user=acme%2Fa")).text
        assert "The kettle of acme is blue." in shown
        assert "globex" not in shown
        address = f"/admin/memories/{mine['memory_id']}"
        assert (await gateway.ask("GET", f"{address}?user=acme%2Fa")).status_code == 200
        assert (await gateway.ask("GET", f"{address}?user=globex%2Fa")).status_code == 404
        assert (await gateway.ask("GET", "/admin/memories?user=acme")).status_code == 422


async def test_client_over_http_names_users_by_their_fields(tmp_path: Path) -> None:
    async with running(tmp_path) as (gateway, _, _):
        fields = TENANTS.boundary_fields
        transport = HttpTransport("http://localhost", None, 20, None, gateway.http, fields)
        await transport.open()
        memory = MemoryCalls(transport, user_id=tenant("acme", "a"), boundary=fields)
        await memory.remember("The kettle of acme is blue.")
        await memory.remember("The kettle of globex is red.", user_id="globex/a")
        assert len((await memory.retrieve("kettle")).hits) == 1
        assert len((await memory.retrieve("kettle", users=[tenant("acme", "a"), tenant("globex", "a")])).hits) == 2
        assert (await memory.forget(user=True)).forgotten > 0
        assert len((await memory.retrieve("kettle", users=["acme/a", "globex/a"])).hits) == 1
        await transport.close()
