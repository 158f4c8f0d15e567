"""A user whose turns give items and clusters, and the user's whole state, equal for equal turns.

State is described by names in place of memory ids, which differ between users: a turn by its turn id, other memories by
their texts.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from modestream_client import MemoryClient, MemoryServiceError

from tests.worlds.live.flow import all_ready
from tests.worlds.live.processes import Deployment, Worker, eventually
from tests.worlds.live.vectors_on_disk import vectors_on_disk

KILLS = int(os.environ.get("MODESTREAM_TEST_KILLS", "1"))
"""Users whose worker is killed."""

ENOUGH = 5
"""From this number of kills on, one must interrupt the action; of ten, seven to nine do."""

AT_ONCE = 50

MORNINGS = "tomatoes peppers lettuce violin bicycle kettle lantern harbour orchard carpet chimney compass"
EVENINGS = "engine feather glacier hammock island jacket keyboard ladder mirror necklace"
SUBJECTS = f"{MORNINGS} {EVENINGS}".split()
"""Subjects of four turns each, which form a cluster."""

STATED = (
    "The deploy target is fly.io now.",
    "No, the new deploy target is AWS, not fly.io.",
    "We decided to use PostgreSQL for the ledger. The API must answer within 200 ms.",
    "The API must really answer within 200 ms. The login fails with a 500.",
    "My goal is to ship the beta in June.",
    "I live in Lyon.",
    "I now live in Paris.",
)
"""Turns with items; some contradict or repeat each other."""

TURNS = [
    *(f"Looked after my {subject} carefully before breakfast on day {n}." for subject in SUBJECTS for n in range(4)),
    *STATED,
]

Json = dict[str, Any]


async def remember_layers(client: MemoryClient, user: str) -> list[str]:
    """Remember all turns of a user, wait for the vectors and return the memory ids."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def say(number: int, text: str) -> str:
        when = f"2026-02-{number % 28 + 1:02}T08:{number // 28:02}:00Z"
        how: dict[str, Any] = {"turn_id": f"t-{number}", "conversation_id": f"c{number % 2}", "occurred_at": when}
        async with gate:
            return str((await client.remember(text, user_id=user, **how)).memory_id)

    ids = await asyncio.gather(*(say(number, text) for number, text in enumerate(TURNS)))
    await eventually(partial(all_ready, client, user), f"{user} has all vectors")
    return ids


async def consolidate(client: MemoryClient, user: str) -> Json:
    scope = {"user_id": user, "project_id": "default"}
    reply, _ = await client.request("consolidate", {"schema": "consolidate.v1", "scope": scope, "mode": None})
    assert reply.result is not None
    return dict(reply.result)


async def load_records(client: MemoryClient, user: str, turns: Iterable[str]) -> dict[str, Json]:
    known: dict[str, Json] = {}
    loaded, pending = set[str](), set(turns)
    while pending:
        loaded |= pending
        found = await asyncio.gather(*(_record(client, user, memory_id) for memory_id in sorted(pending)))
        known |= {memory["memory_id"]: memory for memory in found if memory is not None}
        named = {name for memory in known.values() for name in (*memory.get("items", ()), memory["superseded_by"])}
        pending = {name for name in named if name is not None} - loaded
    return known


def describe_state(known: dict[str, Json]) -> list[tuple[object, ...]]:
    """Describe the state by names, equal for users with equal state."""
    names: dict[str | None, str | None] = {None: None}
    names |= {
        memory["memory_id"]: memory["turn_id"] if memory["origin"] == "said" else memory["text"]
        for memory in known.values()
    }
    return sorted(
        (
            str(memory["origin"]),
            str(names[memory["memory_id"]]),
            memory["text"],
            str(names.get(memory["superseded_by"], "nobody")),
            sorted(str(names.get(item, "nobody")) for item in memory.get("items", ())),
            sorted((span["turn_id"], span["start"], span["end"]) for span in memory["evidence"]),
            memory["embedding"]["status"],
        )
        for memory in known.values()
    )


async def count_indexed(client: MemoryClient, user: str) -> int:
    health = await client.command("health", user_id=user)
    return sum(int(mode["eligible"]) for mode in health["modes"].values())


@dataclass
class EndStates:
    """The final state of each user, and how many kills came before the reply."""

    of: dict[str, list[tuple[object, ...]]]
    ids: list[str]
    in_the_middle: int


async def collect_end_states(
    deployment: Deployment,
    client: MemoryClient,
    turns: Mapping[str, Sequence[str]],
    act: Callable[[MemoryClient, str], Awaitable[object]],
) -> EndStates:
    """Run `act` for every user: undisturbed for the first, with a kill at a different moment for each other one."""
    first, *others = turns
    loop = asyncio.get_running_loop()
    before = loop.time()
    await act(client, first)
    took = loop.time() - before
    middle = 0
    for number, user in enumerate(others):
        working = asyncio.ensure_future(act(client, user))
        await asyncio.wait([working], timeout=took * (number + 0.5) / len(others))
        middle += not working.done()
        await deployment.workers[-1].kill()
        await deployment.ready()
        await working
    # An answer comes before all that follows from it has happened.
    await deployment.until_processed()
    of, ids = {}, list[str]()
    for user, turn_ids in turns.items():
        await eventually(partial(all_ready, client, user), f"{user} has all vectors")
        known = await load_records(client, user, turn_ids)
        assert await count_indexed(client, user) == len(known)
        of[user] = describe_state(known)
        ids += known
    return EndStates(of, ids, middle)


def assert_same_states(states: Mapping[str, Sequence[tuple[object, ...]]]) -> None:
    """Check that all users have the state of the first; a failure names the differences alone."""
    (_, expected), *others = states.items()
    for user, state in others:
        missing = [memory_id for memory_id in expected if memory_id not in state]
        added = [memory_id for memory_id in state if memory_id not in expected]
        found = (user, missing, added, len(state))
        assert found == (user, [], [], len(expected)), found


async def same_vectors(deployment: Deployment, worker: Worker, ids: Sequence[str]) -> None:
    """Check that exactly these memories have one vector each on disk."""
    await deployment.until_processed()
    assert await worker.terminate(within_s=20) == 0
    stored, count = await vectors_on_disk(worker.data_dir, ids, deployment.partitions)
    assert count == len(ids)
    assert {memory.memory_id for memory in stored} == set(ids)


async def _record(client: MemoryClient, user: str, memory_id: str) -> Json | None:
    try:
        return dict(await client.command("get_memory", {"memory_id": memory_id}, user_id=user))
    except MemoryServiceError as problem:
        if problem.code != "not_found":
            raise
        return None
