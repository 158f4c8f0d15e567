"""`kill -9` of worker and gateway during uploads, reading and forgetting of files: nothing is lost, nothing is left."""

import asyncio
import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.gateways import Gateway, gateway_on
from tests.worlds.live.processes import Deployment, Worker, deployed, eventually

Json = dict[str, Any]

FILES = 12
AT_ONCE = 4
KILLS_AT = (3, 6)
"""Accepted files at which the worker and the gateway are killed."""

GRACE_S = 2.0
"""Seconds after which `reconcile` removes what no turn has."""


def body_of(number: int) -> bytes:
    paragraphs = [
        f"Day {day} of file {number}: the train to Faro left at {day}:15, nobody was late. " * 9 for day in range(9)
    ]
    return "\n\n".join([*paragraphs, f"The key of box{number}x is under the third pot.", decision(number)]).encode()


def decision(number: int) -> str:
    """Return the statement of a file, which becomes an item."""
    return f"We decided to use lock{number}y for the boat house."


@pytest.fixture
def system(live_broker: RunningBroker, models: Path, tmp_path: Path) -> Iterator[Deployment]:
    more = {"FILES": str(tmp_path / "files"), "FILES_GRACE_S": str(GRACE_S)}
    with deployed(live_broker.bootstrap, tmp_path, models, **more) as own:
        yield own


async def send(http: httpx.AsyncClient, number: int, user: str) -> Json:
    """Upload a file, again after each failure; return its answer."""
    form = {"conversation_id": f"c{number % 2}", "occurred_at": "2026-03-01T09:30:00Z"}
    while True:
        with suppress(httpx.TransportError):
            file = {"file": (f"{number}.txt", body_of(number), "text/plain")}
            answer = await http.post(f"/v1/users/{user}/files", data=form, files=file, headers={"Prefer": "wait=4"})
            if answer.is_success:
                return dict(answer.json())
            assert answer.status_code in (503, 504), answer.text
        await asyncio.sleep(0.1)


async def status(http: httpx.AsyncClient, user: str, made: Json) -> str:
    with suppress(httpx.TransportError):
        answer = await http.get(f"/v1/users/{user}/memories/{made['memory_id']}")
        if answer.is_success:
            return str(answer.json()["resources"][0]["status"])
    return "unknown"


async def all_read(http: httpx.AsyncClient, user: str, made: list[Json]) -> None:
    async def read() -> bool:
        return [await status(http, user, file) for file in made] == ["ready"] * len(made)

    await eventually(read, "all files are read", within_s=90)


async def texts_of_type(http: httpx.AsyncClient, user: str, kind: str) -> list[str]:
    """Return the texts of all memories of a type: `document` has the parts of files."""
    query: Json = {"limit": 500, "types": kind}
    page = (await http.get(f"/v1/users/{user}/memories", params=query, headers={"Prefer": "wait=30"})).json()
    return [item["text"] for item in page["items"]]


async def reconcile(http: httpx.AsyncClient, user: str) -> None:
    await asyncio.sleep(GRACE_S)
    answer = await http.post(f"/v1/users/{user}/jobs/reconcile", json={}, headers={"Prefer": "wait=60"})
    assert answer.is_success, answer.text


def stored(system: Deployment) -> list[bytes]:
    """Return what lies in the folder of files."""
    contents = []
    for folder, _, names in os.walk(system.more["FILES"]):
        for name in names:
            # A worker may be removing it.
            with suppress(FileNotFoundError):
                contents.append(Path(folder, name).read_bytes())
    return contents


async def upload_all(system: Deployment, worker: Worker, gateway: Gateway, http: httpx.AsyncClient) -> list[Json]:
    """Upload all files while worker and gateway are killed."""
    accepted: dict[int, Json] = {}
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with gate:
            accepted[number] = await send(http, number, "u1")

    async def until(count: int) -> None:
        while len(accepted) < count:
            await asyncio.sleep(0.01)

    sending = asyncio.gather(*(one(number) for number in range(FILES)))
    await until(KILLS_AT[0])
    await worker.kill()
    system.start()
    await until(KILLS_AT[1])
    gateway.kill()
    gateway.start()
    await sending
    return [accepted[number] for number in range(FILES)]


async def test_files_are_read_once_and_kept_whatever_is_killed(system: Deployment, tmp_path: Path) -> None:
    worker = await system.ready()
    async with gateway_on(system.environment, tmp_path) as (gateway, http):
        made = await upload_all(system, worker, gateway, http)
        await (await system.serving()).kill()
        await system.ready()
        await all_read(http, "u1", made)
        texts = await texts_of_type(http, "u1", "document")
        assert len(set(texts)) == len(texts)
        assert [sum(f"box{number}x" in text for text in texts) for number in range(FILES)] == [1] * FILES

        async def has_all_items() -> bool:
            # A file is `ready` before its items are written.
            return len(await texts_of_type(http, "u1", "semantic")) >= FILES

        await eventually(has_all_items, "each file has its item")
        assert sorted(await texts_of_type(http, "u1", "semantic")) == sorted(map(decision, range(FILES)))
        for number, each in enumerate(made):
            answer = await http.get(f"/v1/users/u1/files/{each['resource']['sha256']}")
            assert answer.content == body_of(number)
        await reconcile(http, "u1")
        assert sorted(map(hash_of, stored(system))) == sorted(hash_of(body_of(number)) for number in range(FILES))


async def test_a_killed_forget_leaves_no_bytes(system: Deployment, tmp_path: Path) -> None:
    worker = await system.ready()
    async with gateway_on(system.environment, tmp_path) as (_, http):
        made = [await send(http, number, "u1") for number in range(FILES)]
        kept = await send(http, 0, "u2")
        await all_read(http, "u1", made)
        await all_read(http, "u2", [kept])
        forgetting = asyncio.create_task(forget(http))
        while len(stored(system)) == FILES + 1 and not forgetting.done():
            await asyncio.sleep(0)
        await worker.kill()
        await system.ready()
        await forgetting

        async def gone() -> bool:
            return stored(system) == [body_of(0)]

        await eventually(gone, "the bytes of the forgotten user are removed")
        await reconcile(http, "u2")
        assert stored(system) == [body_of(0)]


async def forget(http: httpx.AsyncClient) -> None:
    while True:
        with suppress(httpx.TransportError):
            if (await http.delete("/v1/users/u1?confirm=u1", headers={"Prefer": "wait=30"})).is_success:
                return
        await asyncio.sleep(0.2)


def hash_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
