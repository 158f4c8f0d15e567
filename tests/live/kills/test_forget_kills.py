"""`kill -9` in the middle of forgetting many memories, and of a rebuild: both are completed.

Afterwards nothing of the user is found, counted or indexed, a replay restores nothing, new turns are
remembered, and other users lose nothing.
"""

import asyncio
import shutil
from functools import partial
from typing import Any

import pytest
from modestream_client import MemoryClient

from tests.worlds.live.flow import all_ready
from tests.worlds.live.layered import (
    ENOUGH,
    KILLS,
    assert_same_states,
    collect_end_states,
    consolidate,
    remember_layers,
    same_vectors,
)
from tests.worlds.live.layered import TURNS as SAID
from tests.worlds.live.processes import Deployment, Worker, eventually
from tests.worlds.live.vectors_on_disk import vectors_on_disk

TURNS = 200
"""Turns of the forgotten user; forgetting takes some tenths of a second."""

AT_ONCE = 50

TRIES = 6
"""Attempts until a kill interrupts a forget; nine in ten do."""


async def remember_turns(client: MemoryClient, user: str, count: int) -> list[Any]:
    gate = asyncio.Semaphore(AT_ONCE)

    async def say(number: int) -> Any:
        async with gate:
            text = f"The box crate{number}x is on the shelf."
            return await client.remember(text, turn_id=f"t-{number}", user_id=user, conversation_id=f"c{number % 2}")

    return await asyncio.gather(*map(say, range(count)))


async def eligible(client: MemoryClient, user: str) -> int:
    health = await client.command("health", user_id=user)
    return int(health["modes"]["general"]["eligible"])


async def kill_during(working: "asyncio.Task[Any]", worker: Worker, client: MemoryClient, user: str) -> bool:
    """Kill a worker once some of a user's memories are gone; False if all were gone before."""
    while await eligible(client, user) == TURNS and not working.done():
        pass
    if working.done():
        return False
    await worker.kill()
    return True


async def kill_during_forget(
    deployment: Deployment, worker: Worker, client: MemoryClient, selector: dict[str, Any]
) -> str:
    """Return a user whose forget was interrupted by a kill and completed afterwards."""
    for user in (f"user-{number}" for number in range(TRIES)):
        await remember_turns(client, user, TURNS)
        forgetting = asyncio.create_task(client.command("forget", selector, user_id=user))
        if await kill_during(forgetting, worker, client, user):
            await deployment.ready()
            await forgetting
            return user
        # It ended too soon: this user is ignored.
        await forgetting
        await client.command("forget", {"user": True}, user_id=user)
    raise AssertionError("every attempt ended before the kill")


@pytest.mark.parametrize("selector", [{"user": True}, {"conversation_id": "c0"}], ids=["user", "conversation"])
async def test_interrupted_forget_is_completed(deployment: Deployment, selector: dict[str, Any]) -> None:
    worker = await deployment.ready()
    left = 0 if "user" in selector else TURNS // 2
    async with deployment.client() as client:
        others = await remember_turns(client, "another", 10)
        gone = await kill_during_forget(deployment, worker, client, selector)
        assert await eligible(client, gone) == left
        assert await eligible(client, "another") == len(others)
        again = await remember_turns(client, gone, TURNS)
        assert sum("forgotten" in [warning.code for warning in answer.warnings] for answer in again) == TURNS - left
        assert await eligible(client, gone) == left
        fresh = await client.remember("A fresh start.", turn_id="fresh", user_id=gone, conversation_id="c0")
        answer = await client.retrieve("box shelf fresh start", users=gone, top_k=100)
        forgotten = {memory.memory_id for memory in again if memory.warnings}
        assert not forgotten & {hit.memory_id for hit in answer.hits}
        for user in (gone, "another"):
            await eventually(partial(all_ready, client, user), f"{user} has all vectors")
        await deployment.until_processed()
    worker = deployment.workers[-1]
    assert await worker.terminate(within_s=20) == 0
    known = [memory.memory_id for memory in (*again, *others, fresh) if memory.memory_id is not None]
    stored, counted = await vectors_on_disk(worker.data_dir, known, deployment.partitions)
    assert not forgotten & {memory.memory_id for memory in stored}
    assert counted == len(stored) == left + len(others) + 1


async def declare_everything(client: MemoryClient, user: str) -> None:
    """Declare modes, a category and an intention of a user."""
    await client.declare_mode(
        "therapy", "general", user_id=user, description="Dr. Weber", is_default=True, private=True
    )
    await client.declare_mode("notes", "general", user_id=user, description="Dr. Weber", for_project=True)
    await client.command("declare_category", {"name": "health", "description": "Dr. Weber"}, user_id=user)
    await client.command("set_intention", {"goals": ["call Dr. Weber"]}, user_id=user)
    # The turns of the user are counted in this mode.
    await client.set_default_mode("general", user_id=user)


async def shown(client: MemoryClient, user: str) -> list[Any]:
    return [await client.command(name, user_id=user) for name in ("list_modes", "list_categories", "get_intention")]


async def test_interrupted_forget_of_a_user_removes_what_it_has_declared(deployment: Deployment) -> None:
    worker = await deployment.ready()
    async with deployment.client() as client:
        for number in range(TRIES):
            await declare_everything(client, f"user-{number}")
        gone = await kill_during_forget(deployment, worker, client, {"user": True})
        await deployment.until_processed()
        new = await shown(client, "another")
        assert await shown(client, gone) == new
        # Everything is made again from the logs.
        worker = deployment.workers[-1]
        await worker.kill()
        shutil.rmtree(worker.data_dir)
        await deployment.ready()
        assert await shown(client, gone) == new
        fresh = await client.remember("A fresh start.", turn_id="fresh", user_id=gone)
        assert fresh.mode == "general"
        assert fresh.mode_source == "fallback"


async def test_derived_state_after_a_killed_forget_is_as_without_a_kill(deployment: Deployment) -> None:
    await deployment.ready()
    users = [f"u{number}" for number in range(KILLS + 1)]
    async with deployment.client() as client:
        turns = {user: await remember_layers(client, user) for user in users}
        for user in users:
            await consolidate(client, user)

        async def forget(client: MemoryClient, user: str) -> Any:
            return await client.command("forget", {"conversation_id": "c0"}, user_id=user)

        end = await collect_end_states(deployment, client, turns, forget)
        assert end.in_the_middle or KILLS < ENOUGH, "every attempt ended before the kill"
        assert len([memory for memory in end.of["u0"] if memory[0] == "said"]) == len(SAID) // 2
        assert_same_states(end.of)
        await same_vectors(deployment, deployment.workers[-1], end.ids)


async def test_interrupted_rebuild_resumes(deployment: Deployment) -> None:
    worker = await deployment.ready()
    async with deployment.client() as client:
        await remember_turns(client, "u1", TURNS)
        await eventually(partial(all_ready, client, "u1"), "u1 has all vectors")
        rebuilding = asyncio.create_task(client.command("rebuild", user_id="u1"))

        async def half_done() -> bool:
            jobs = (await client.command("health", user_id="u1"))["jobs"]
            return bool(jobs) and jobs[0]["done"] > 0

        await eventually(half_done, "some vectors are made again")
        await worker.kill()
        await deployment.ready()
        result = await rebuilding
        assert result["processed"] == TURNS
        assert result["failed"] == 0
        answer = await client.retrieve("box shelf", users="u1", top_k=100)
        assert answer.strategy == "hybrid"
        assert len(answer.hits) == 100
        health = await client.command("health", user_id="u1")
        assert health["modes"]["general"]["ready"] == TURNS
        assert health["modes"]["general"]["last_backfill"] is not None


@pytest.mark.parametrize("command", ["forget", "delete_mode"])
async def test_turns_after_a_command_survive_its_redelivery(deployment: Deployment, command: str) -> None:
    worker = await deployment.ready()
    async with deployment.client(user_id="u1") as client:
        await client.declare_mode("code", "general")
        await remember_turns(client, "u1", 3)
        await client.remember("The box is made of wood.", conversation_id="c0", mode="code")
        if command == "forget":
            await client.command("forget", {"conversation_id": "c0"})
        else:
            await client.command("delete_mode", {"name": "code", "memories": "forget"})
            await client.declare_mode("code", "general")
        # The worker is killed before it commits the command's offset, which happens twice a second.
        fresh = await client.remember("A fresh start.", turn_id="fresh", conversation_id="c0", mode="code")
        await worker.kill()
        await deployment.ready()
        await deployment.until_processed()
        answer = await client.retrieve("a fresh start", mode="code")
        assert [hit.memory_id for hit in answer.hits] == [fresh.memory_id]
