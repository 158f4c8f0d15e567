"""The protocol over HTTP: users in paths and keys, hosts, methods."""

from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from gateway.keys.callers import KeyCallers
from gateway.keys.key_file import Key, KeyFile, digest_of
from schemas.state.policies import Policy
from tests.harnesses.mcp import REVISIONS, answer, error, over_http
from tests.worlds.in_memory_client import InMemoryTransport, client_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}

POLICY = Policy.model_validate(
    {"principals": {"app": [{"user_id": "*"}], "viewer": [{"user_id": "u1", "may": ["read"]}], "stranger": []}}
)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("user", ["u1", "a/b ü%41", "*x?#&;=+"])
async def test_path_names_the_user(pipeline: InMemoryPipeline, user: str, revision: str) -> None:
    async with (
        over_http(InMemoryTransport(pipeline)) as url,
        Client(f"{url}/mcp/users/{quote(user, safe='')}", mode=REVISIONS[revision]) as session,
    ):
        assert session.protocol_version == revision
        said = await answer(session, "add_memory", text="The lamp is in the cellar.")
        found = await answer(session, "search_memory", query="where is the lamp?")
        assert [memory["memory_id"] for memory in found["memories"]] == [said["memory_id"]]
    hits = (await client_of(pipeline, user_id=user).retrieve("where is the lamp?")).hits
    assert [hit.memory_id for hit in hits] == [said["memory_id"]]


@pytest.fixture
def callers(tmp_path: Path) -> KeyCallers:
    keys = [("own", "app", "u1"), ("any", "app", None), ("viewer", "viewer", "u1"), ("stranger", "stranger", None)]
    made = [Key(id=name, sha256=digest_of(name), principal=principal, user_id=user) for name, principal, user in keys]
    KeyFile(keys=tuple(made)).write(tmp_path / "keys.json")
    return KeyCallers(tmp_path / "keys.json", POLICY, 100)


@pytest.mark.parametrize(
    ("key", "path", "status"),
    [
        (None, "/mcp", 401),
        ("unknown", "/mcp/users/u1", 401),
        ("own", "/mcp", 200),
        ("own", "/mcp/users/u1", 200),
        ("own", "/mcp/users/u2", 403),
        ("any", "/mcp", 422),
        ("any", "/mcp/users/u2", 200),
        ("any", "/mcp/users/%ff", 422),
        ("viewer", "/mcp", 200),
        ("stranger", "/mcp/users/u1", 403),
        ("own", "/mcp/users", 404),
        ("own", "/mcp/sse", 404),
    ],
)
async def test_key_and_path(
    pipeline: InMemoryPipeline, callers: KeyCallers, key: str | None, path: str, status: int
) -> None:
    headers = HEADERS if key is None else HEADERS | {"Authorization": f"Bearer {key}"}
    async with over_http(InMemoryTransport(pipeline), callers) as url, httpx.AsyncClient(headers=headers) as http:
        told = await http.post(url + path, json=LIST)
    assert told.status_code == status, told.text
    assert ("search_memory" in told.text) == (status == 200)
    if status != 200:
        assert told.headers["content-type"] == "application/problem+json"


async def test_key_that_reads_may_not_write(pipeline: InMemoryPipeline, callers: KeyCallers) -> None:
    async with (
        over_http(InMemoryTransport(pipeline), callers) as url,
        create_mcp_http_client(headers={"Authorization": "Bearer viewer"}) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as session,
    ):
        for tool in (await session.list_tools()).tools:
            required = dict.fromkeys(tool.input_schema.get("required", []), "x")
            result = await session.call_tool(tool.name, required)
            refused = result.is_error and "not_allowed" in str(result.content[0])
            assert tool.annotations is not None
            if tool.annotations.read_only_hint:
                assert not refused, tool.name
            else:
                assert result.is_error or result.structured_content == {"forgotten": 0}, tool.name
        assert "not_allowed" in await error(session, "add_memory", text="x")
        assert await answer(session, "list_memories") == {"memories": [], "total": 0}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
async def test_pages_of_elsewhere_are_refused(pipeline: InMemoryPipeline, headers: dict[str, str], status: int) -> None:
    async with over_http(InMemoryTransport(pipeline)) as url, httpx.AsyncClient(headers=HEADERS | headers) as http:
        assert (await http.post(f"{url}/mcp/users/u1", json=LIST)).status_code == status


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_no_streams_and_no_sessions(pipeline: InMemoryPipeline, method: str) -> None:
    async with over_http(InMemoryTransport(pipeline)) as url, httpx.AsyncClient(headers=HEADERS) as http:
        told = await http.request(method, f"{url}/mcp/users/u1")
    assert told.status_code == 405
    assert told.headers["allow"] == "POST"
    assert told.json()["code"] == "method_not_allowed"
