"""Files over the HTTP door: uploaded, read, given back to their user alone; what is refused leaves nothing."""

import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from modestream_client import HttpMemoryClient, MemoryServiceError

from gateway.service.files import SETTLED
from gateway.service.service import MemoryService
from schemas.state.files import boundary_prefix
from tests.worlds.gateway import http_over
from tests.worlds.in_memory_client import InMemoryTransport
from tests.worlds.in_memory_pipeline import InMemoryPipeline

USER = "/v1/users/u1"
LIMIT = 200_000
KEY = b"The spare key of the boat house is under the third flower pot."
SHA256 = hashlib.sha256(KEY).hexdigest()
WHEN = "2026-03-01T09:30:00Z"


@pytest.fixture
async def http(pipeline: InMemoryPipeline) -> AsyncIterator[httpx.AsyncClient]:
    service = MemoryService(InMemoryTransport(pipeline), files=pipeline.file_bytes, max_file_bytes=LIMIT)
    async with http_over(service) as client:
        yield client


async def send(
    http: httpx.AsyncClient, body: bytes = KEY, name: str = "key.txt", user: str = USER, **fields: str
) -> httpx.Response:
    form = {"conversation_id": "c1"} | fields
    return await http.post(f"{user}/files", files={"file": (name, body, "text/plain")}, data=form)


async def kept(pipeline: InMemoryPipeline) -> list[str]:
    return [found.key for found in await pipeline.file_bytes.find(boundary_prefix("u1"))]


async def test_an_upload_is_a_turn_whose_file_is_read(http: httpx.AsyncClient, pipeline: InMemoryPipeline) -> None:
    answer = await send(http)
    assert answer.status_code == 201
    made: dict[str, Any] = answer.json()
    assert made["resource"] == {
        "uri": f"file:{SHA256}",
        "media_type": "text/plain",
        "sha256": SHA256,
        "bytes": len(KEY),
        "status": "pending",
    }

    def is_ready() -> bool:
        return any(memory.resources and memory.resources[0].status == "ready" for memory in pipeline.memories.all())

    await pipeline.until(is_ready)
    [hit] = (await http.post(f"{USER}/memories/search", json={"query": "spare key", "types": ["document"]})).json()[
        "hits"
    ]
    assert hit["turn_id"] == made["turn_id"]


async def test_content_is_the_name_of_the_file_without_folders(http: httpx.AsyncClient) -> None:
    made = (await send(http, name="../../etc/Übersicht.txt")).json()
    assert (await http.get(f"{USER}/memories/{made['memory_id']}")).json()["text"] == "Übersicht.txt"


async def test_the_same_upload_again_is_a_duplicate(http: httpx.AsyncClient, pipeline: InMemoryPipeline) -> None:
    first, again = [await send(http, occurred_at=WHEN) for _ in range(2)]
    assert first.status_code == 201
    assert again.status_code == 200
    assert again.json()["duplicate"]


async def test_reconcile_leaves_one_of_several_uploads_of_a_turn(
    http: httpx.AsyncClient, pipeline: InMemoryPipeline
) -> None:
    for _ in range(3):
        await send(http, occurred_at=WHEN)
    pipeline.clock.forward(10**9)
    await pipeline.command("reconcile")
    assert len(await kept(pipeline)) == 1
    assert (await http.get(f"{USER}/files/{SHA256}")).content == KEY


async def test_a_refused_upload_leaves_the_bytes_of_another_one_of_the_same_turn(
    http: httpx.AsyncClient, pipeline: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted: list[httpx.Response] = []
    remove = pipeline.file_bytes.remove

    async def remove_after_another(keys: Sequence[str]) -> None:
        monkeypatch.setattr(pipeline.file_bytes, "remove", remove)
        await pipeline.command("declare_mode", name="later", embedder="tiny32")
        accepted.append(await send(http, mode="later", occurred_at=WHEN))
        await remove(keys)

    monkeypatch.setattr(pipeline.file_bytes, "remove", remove_after_another)
    assert (await send(http, mode="later", occurred_at=WHEN)).json()["code"] == "unknown_mode"
    assert [answer.status_code for answer in accepted] == [201]
    assert (await http.get(f"{USER}/files/{SHA256}")).content == KEY


async def test_a_repeated_upload_takes_no_room_beside_bytes_that_stay(
    http: httpx.AsyncClient, pipeline: InMemoryPipeline
) -> None:
    await send(http, occurred_at=WHEN)
    [first] = await kept(pipeline)
    long_ago = time.time() - 2 * SETTLED.total_seconds()
    os.utime(Path(pipeline.settings.file_place, first), (long_ago, long_ago))
    await send(http, occurred_at=WHEN)
    assert await kept(pipeline) == [first]


async def test_an_idempotency_key_makes_two_uploads_one(http: httpx.AsyncClient) -> None:
    files, data = {"file": ("key.txt", KEY, "text/plain")}, {"conversation_id": "c1"}
    sent = [
        await http.post(f"{USER}/files", files=files, data=data, headers={"Idempotency-Key": "k"}) for _ in range(2)
    ]
    assert [answer.status_code for answer in sent] == [201, 200]


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"metadata": "no object"}, "invalid_value", "metadata"),
        ({"occurred_at": "yesterday"}, "invalid_value", "occurred_at"),
        ({"project_id": "*"}, "invalid_value", "project_id"),
        ({"mode": "never"}, "unknown_mode", "mode"),
        ({"contents": "x"}, "invalid_value", "contents"),
        ({"conversation_id": ""}, "invalid_value", "conversation_id"),
    ],
)
async def test_a_bad_form_is_refused_and_nothing_kept(
    http: httpx.AsyncClient, pipeline: InMemoryPipeline, fields: dict[str, str], code: str, field: str
) -> None:
    problem = (await send(http, KEY, "key.txt", USER, **fields)).json()
    assert problem["status"] == 422
    assert problem["code"] == code
    assert problem["field"] == field
    assert await kept(pipeline) == []


@pytest.mark.parametrize("size", [LIMIT + 1, LIMIT + 4_000_000])
async def test_a_file_that_is_too_large_is_refused(
    http: httpx.AsyncClient, pipeline: InMemoryPipeline, size: int
) -> None:
    answer = await send(http, bytes(size))
    assert answer.status_code == 413
    assert await kept(pipeline) == []


async def test_what_is_no_form_is_refused(http: httpx.AsyncClient) -> None:
    answer = await http.post(f"{USER}/files", content=KEY, headers={"Content-Type": "text/plain"})
    assert answer.status_code == 422
    assert answer.json()["field"] == "file"


async def test_bytes_come_back_as_a_download_that_runs_nowhere(http: httpx.AsyncClient) -> None:
    await send(http, name="a b.html")
    answer = await http.get(f"{USER}/files/{SHA256}")
    assert answer.content == KEY
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20b.html"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("sandbox")


async def test_bytes_of_another_user_are_as_bytes_of_nobody(http: httpx.AsyncClient) -> None:
    await send(http)
    same = {"request_id": None}
    foreign, missing = [await http.get(f"/v1/users/u2/files/{sha256}") for sha256 in (SHA256, "0" * 64)]
    assert foreign.status_code == 404
    assert foreign.json() | same == missing.json() | same


async def test_metadata_of_the_form_is_that_of_the_turn(http: httpx.AsyncClient) -> None:
    made = (await send(http, metadata=json.dumps({"client": "Acme"}))).json()
    assert (await http.get(f"{USER}/memories/{made['memory_id']}")).json()["metadata"] == {"client": "Acme"}


async def test_the_client_uploads_bytes_and_has_them_back(pipeline: InMemoryPipeline) -> None:
    service = MemoryService(InMemoryTransport(pipeline), files=pipeline.file_bytes)
    async with http_over(service) as http, HttpMemoryClient("http://127.0.0.1", client=http, user_id="u1") as memory:
        made = await memory.upload(KEY, name="key.txt", metadata={"client": "Acme"})
        assert made.resource["media_type"] == "text/plain"
        assert await memory.download(made.resource["sha256"]) == KEY
        with pytest.raises(MemoryServiceError, match="no such file"):
            await memory.download("0" * 64)
