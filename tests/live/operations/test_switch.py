"""Gateways follow a deployment to its new prefix while callers go on writing, and the former one is deleted."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from modestream_client import MemoryClient, MemoryUnreachable

from gateway.backend.kafka import ServingBackend
from gateway.connection_settings import ConnectionSettings
from gateway.stdio import backend_to
from operations.migrate import MigrateOptions, migrate
from streams.adapters.kafka.clients import topics_of_deployment
from tests.worlds.live.gateways import gateway_on
from tests.worlds.live.processes import Deployment, eventually

USERS = ("ana", "ben")
LONGEST_S = 20.0
"""Limit of the time in which a caller gets no answer; a switch takes about eight seconds of it."""


def text_of(number: int) -> str:
    return f"The parcel number {number} lies on the shelf."


async def say_until(stop: asyncio.Event, http: httpx.AsyncClient, user: str, told: dict[str, str]) -> float:
    """Say one turn after the other, and what failed again; return the longest time of one, in seconds."""
    clock, longest, number = asyncio.get_running_loop().time, 0.0, 0
    while not stop.is_set():
        began = clock()
        body = {"conversation_id": "c", "role": "user", "content": text_of(number), "turn_id": f"t-{number}"}
        while True:
            try:
                answer = await http.post(f"/v1/users/{user}/turns", json=body, headers={"Prefer": "wait=10"})
            except httpx.TransportError:
                continue
            if answer.is_success:
                break
            # A caller that waits for the end of the pause is answered, not sent away.
            assert answer.status_code == 504, answer.text
        told[answer.json()["memory_id"]] = text_of(number)
        longest = max(longest, clock() - began)
        number += 1
        await asyncio.sleep(0.05)
    return longest


async def remember_until(stop: asyncio.Event, client: MemoryClient, user: str, told: dict[str, str]) -> None:
    """Remember one turn after the other over Kafka, in the deployment that the client was given."""
    number = 0
    while not stop.is_set():
        said = await client.remember(text_of(number), user_id=user, turn_id=f"t-{number}", timeout=30)
        told[str(said.memory_id)] = text_of(number)
        number += 1
        await asyncio.sleep(0.05)


async def is_answered(wire: ServingBackend, user: str) -> int:
    """Return the number of a user's memories, over the wire of `python -m streams mcp`."""
    request = {"schema": "list.v1", "scope": {"user_id": user}, "what": "memories", "types": ["episodic"]}
    reply, _ = await wire.request("retrieve", request, principal=None, timeout=30)
    return int(reply.result["total"])


async def listed(http: httpx.AsyncClient, user: str) -> dict[str, str]:
    found: dict[str, str] = {}
    cursor: dict[str, str] = {}
    while True:
        query = {"limit": "100", "types": "episodic", **cursor}
        page = (await http.get(f"/v1/users/{user}/memories", params=query)).raise_for_status().json()
        found |= {item["memory_id"]: item["text"] for item in page["items"]}
        if page["next"] is None:
            return found
        cursor = {"cursor": page["next"]}


async def test_gateways_follow_while_callers_write(deployment: Deployment, tmp_path: Path) -> None:
    former = await deployment.ready("former")
    new = replace(deployment, prefix=f"new-{deployment.prefix}", partitions=3)
    await new.ready("new")
    settings = deployment.settings.model_copy(update={"data_dir": tmp_path})
    options = MigrateOptions(to=new.prefix, partitions=3, switch=True)
    told: dict[str, dict[str, str]] = {user: {} for user in USERS}
    stop = asyncio.Event()
    wire = ServingBackend(
        ConnectionSettings(broker=deployment.settings.broker, topic_prefix=deployment.prefix), backend_to
    )
    async with gateway_on(deployment.environment, tmp_path) as (gateway, http), deployment.client() as kafka, wire:
        await gateway.has_status(http, "/ready", 200)
        over_kafka: dict[str, str] = {}
        saying = asyncio.gather(*(say_until(stop, http, user, told[user]) for user in USERS))
        remembering = asyncio.create_task(remember_until(stop, kafka, "cleo", over_kafka))
        assert await is_answered(wire, "dora") == 0
        await asyncio.sleep(1)
        assert await migrate(options, settings) == 0
        stop.set()
        assert max(await saying) < LONGEST_S
        await remembering
        assert [await listed(http, user) for user in USERS] == [told[user] for user in USERS]
        async with new.client() as client:
            assert {memory.text async for memory in client.iter_memories(user_id="ana")} == {*told["ana"].values()}
            found = {
                memory.memory_id: memory.text
                async for memory in client.iter_memories(user_id="cleo", types=["episodic"])
            }
            assert found.items() <= over_kafka.items(), "what was copied has the same ids"
            assert await is_answered(wire, "cleo") >= len(found), "the last ones may still be applied"
        assert await former.terminate(30) == 0
        assert await migrate(MigrateOptions(to=new.prefix, drop=True), settings) == 0
        async with new.client() as client:

            async def has_all() -> bool:
                turns = client.iter_memories(user_id="cleo", types=["episodic"])
                return {turn.memory_id: turn.text async for turn in turns} == over_kafka

            await eventually(has_all, "what a client still wrote to the former deployment was copied before it went")

        async def are_gone() -> bool:
            return not await topics_of_deployment(settings)

        await eventually(are_gone, "the topics of the former deployment are deleted")
        with pytest.raises(MemoryUnreachable, match="no deployment with the prefix"):
            await deployment.client().__aenter__()
        assert await deployment.start("late").ended(30) == os.EX_CONFIG
        assert await are_gone(), "a worker that is started late makes no topic"
        gateway.kill()
        gateway.start()
        await gateway.has_status(http, "/ready", 200)
        assert await listed(http, "ben") == told["ben"]
