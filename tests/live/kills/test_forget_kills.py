"""`kill -9` in the middle of a forget of many memories, and of a rebuild: what was begun is done to its end.

In the end nothing of the user is found, counted or lies in the index, a replay brings nothing back, new turns are
remembered, and other users have lost nothing.
"""

import asyncio
from functools import partial
from typing import Any

import pytest

from streams.client import MemoryClient
from tests.worlds.live.flow import all_ready
from tests.worlds.live.layered import ENOUGH, KILLS, consolidate, ends, same_vectors, told
from tests.worlds.live.layered import TURNS as SAID
from tests.worlds.live.processes import Deployment, Worker, eventually
from tests.worlds.live.vectors_on_disk import vectors_on_disk

TURNS = 400
"""Turns of the forgotten user: some tenths of a second to forget."""

AT_ONCE = 50

TRIES = 6
"""Users that are forgotten one after another until a kill hits the middle of one: nine in ten do."""


async def tell(client: MemoryClient, user: str, count: int) -> list[Any]:
    """Have a user say so many turns, many at a time."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def say(number: int) -> Any:
        async with gate:
            said = f"The box crate{number}x is on the shelf."
            return await client.remember(said, turn_id=f"t-{number}", user_id=user, conversation_id=f"c{number % 2}")

    return await asyncio.gather(*map(say, range(count)))


async def eligible(client: MemoryClient, user: str) -> int:
    """How many memories a user has."""
    health = await client.command("health", user_id=user)
    return int(health["modes"]["general"]["eligible"])


async def killed_while(working: "asyncio.Task[Any]", worker: Worker, client: MemoryClient, user: str) -> bool:
    """Kill a worker as soon as some of a user's memories are gone; False where all of them were before it could be."""
    while await eligible(client, user) == TURNS and not working.done():
        pass
    if working.done():
        return False
    await worker.kill()
    return True


async def killed_forgetting(
    deployment: Deployment, worker: Worker, client: MemoryClient, selector: dict[str, Any]
) -> str:
    """A user some of whose turns were being forgotten when the worker was killed; that is done to its end by now."""
    for user in (f"user-{number}" for number in range(TRIES)):
        await tell(client, user, TURNS)
        forgetting = asyncio.create_task(client.command("forget", selector, user_id=user))
        if await killed_while(forgetting, worker, client, user):
            await deployment.ready()
            await forgetting
            return user
        # It was over too soon: as if that user had not been.
        await forgetting
        await client.command("forget", {"user": True}, user_id=user)
    raise AssertionError("each was over before it could be killed")


@pytest.mark.parametrize("selector", [{"user": True}, {"conversation_id": "c0"}], ids=["user", "conversation"])
async def test_a_forget_that_was_killed_in_the_middle_is_done_to_its_end(
    deployment: Deployment, selector: dict[str, Any]
) -> None:
    worker = await deployment.ready()
    left = 0 if "user" in selector else TURNS // 2
    async with deployment.client() as client:
        others = await tell(client, "another", 10)
        gone = await killed_forgetting(deployment, worker, client, selector)
        assert (await eligible(client, gone), await eligible(client, "another")) == (left, len(others))
        again = await tell(client, gone, TURNS)
        assert sum("forgotten" in [one.code for one in answer.warnings] for answer in again) == TURNS - left
        assert await eligible(client, gone) == left
        fresh = await client.remember("A fresh start.", turn_id="fresh", user_id=gone, conversation_id="c0")
        answer = await client.retrieve("box shelf fresh start", users=gone, top_k=100)
        forgotten = {one.memory_id for one in again if one.warnings}
        assert not forgotten & {hit.memory_id for hit in answer.hits}
        for user in (gone, "another"):
            await eventually(partial(all_ready, client, user), f"{user} has all vectors")
        await deployment.at_rest()
    worker = deployment.workers[-1]
    assert await worker.terminate(within_s=20) == 0
    known = [one.memory_id for one in (*again, *others, fresh) if one.memory_id is not None]
    lying, counted = await vectors_on_disk(worker.data_dir, known, deployment.partitions)
    assert not forgotten & {one.memory_id for one in lying}
    assert counted == len(lying) == left + len(others) + 1


async def test_derived_state_after_a_killed_forget_is_as_without_a_kill(deployment: Deployment) -> None:
    await deployment.ready()
    users = [f"u{number}" for number in range(KILLS + 1)]
    async with deployment.client() as client:
        turns = {user: await told(client, user) for user in users}
        for user in users:
            await consolidate(client, user)

        async def forget(client: MemoryClient, user: str) -> Any:
            return await client.command("forget", {"conversation_id": "c0"}, user_id=user)

        end = await ends(deployment, client, turns, forget)
        assert end.in_the_middle or KILLS < ENOUGH, "each was over before it could be killed"
        assert len([one for one in end.of["u0"] if one[0] == "said"]) == len(SAID) // 2
        for user in users[1:]:
            assert end.of[user] == end.of["u0"]
        await same_vectors(deployment, deployment.workers[-1], end.ids)


async def test_a_rebuild_that_was_killed_in_the_middle_goes_on_where_it_was(deployment: Deployment) -> None:
    worker = await deployment.ready()
    async with deployment.client() as client:
        await tell(client, "u1", TURNS)
        await eventually(partial(all_ready, client, "u1"), "u1 has all vectors")
        rebuilding = asyncio.create_task(client.command("rebuild", user_id="u1"))

        async def half_done() -> bool:
            jobs = (await client.command("health", user_id="u1"))["jobs"]
            return bool(jobs) and jobs[0]["done"] > 0

        await eventually(half_done, "some vectors are made again")
        await worker.kill()
        await deployment.ready()
        result = await rebuilding
        assert (result["processed"], result["failed"]) == (TURNS, 0)
        answer = await client.retrieve("box shelf", users="u1", top_k=100)
        assert (answer.strategy, len(answer.hits)) == ("hybrid", 100)
        health = await client.command("health", user_id="u1")
        assert health["modes"]["general"]["ready"] == TURNS
        assert health["modes"]["general"]["last_backfill"] is not None


@pytest.mark.parametrize("command", ["forget", "delete_mode"])
async def test_turns_after_a_command_survive_its_redelivery(deployment: Deployment, command: str) -> None:
    worker = await deployment.ready()
    async with deployment.client(user_id="u1") as client:
        await client.declare_mode("code", "general")
        await tell(client, "u1", 3)
        await client.remember("The box is made of wood.", conversation_id="c0", mode="code")
        if command == "forget":
            await client.command("forget", {"conversation_id": "c0"})
        else:
            await client.command("delete_mode", {"name": "code", "memories": "forget"})
            await client.declare_mode("code", "general")
        # The worker is killed before it has acknowledged the command to Kafka, which it does twice a second.
        fresh = await client.remember("A fresh start.", turn_id="fresh", conversation_id="c0", mode="code")
        await worker.kill()
        await deployment.ready()
        await deployment.at_rest()
        answer = await client.retrieve("a fresh start", mode="code")
        assert [hit.memory_id for hit in answer.hits] == [fresh.memory_id]
