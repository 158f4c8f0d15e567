"""Turns through the whole system: published at once, timed until retrievable and until embedded."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiokafka import AIOKafkaProducer

from streams.client import MemoryClient

USERS = 8
"""So many people speak, spread over the partitions."""

POLL_S = 0.1
"""Between two looks at what is embedded: a hundredth of what is measured."""

PATIENCE_S = 900.0
"""How long a run may take before it is a defect."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Turns per second, from the first byte handed to Kafka."""

    retrievable: float
    embedded: float


async def ingest(
    bootstrap: str, texts: Sequence[str], label: str, *, users: int = USERS, garbage: Sequence[int] = ()
) -> Rates:
    """Publish the texts as turns of new users, `LABEL-0` and so on, and wait for all of them.

    Before each place in `garbage` one record follows that is no JSON.
    """
    async with MemoryClient(bootstrap, timeout=60) as client, asyncio.timeout(PATIENCE_S):
        began = time.perf_counter()
        ends = await _publish(bootstrap, texts, [f"{label}-{number}" for number in range(users)], frozenset(garbage))
        await asyncio.gather(*(_retrievable(client, user, end) for user, end in ends.items()))
        retrievable = time.perf_counter() - began
        while await _embedded(client, ends) < len(texts):  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(POLL_S)
        return Rates(len(texts) / retrievable, len(texts) / (time.perf_counter() - began))


async def _publish(
    bootstrap: str, texts: Sequence[str], users: Sequence[str], garbage: frozenset[int]
) -> Mapping[str, int]:
    """Write all turns; gives for each user the offset of the last one."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5)
    await producer.start()
    try:
        last = {}
        for number, text in enumerate(texts):
            user = users[number % len(users)]
            if number in garbage:
                await producer.send("memory.turns", b"{no json " + text.encode(), key=user.encode())
            last[user] = await producer.send("memory.turns", _turn(user, number, text), key=user.encode())
        return {user: (await written).offset for user, written in last.items()}
    finally:
        await producer.stop()


def _turn(user: str, number: int, text: str) -> bytes:
    turn = {
        "schema": "turn.v1",
        "turn_id": f"t-{number}",
        "scope": {"user_id": user},
        "conversation_id": f"c-{number // 400}",
        "role": "user",
        "content": text,
    }
    return json.dumps(turn).encode()


async def _retrievable(client: MemoryClient, user: str, offset: int) -> None:
    """Wait until a question of this user sees the turn at that offset."""
    while True:
        answer = await client.retrieve("anything", users=user, read_after=offset, top_k=1)
        if not any(warning.code == "not_caught_up" for warning in answer.warnings):
            return


async def _embedded(client: MemoryClient, users: Mapping[str, int]) -> int:
    """How many turns have their vector. One user after another; who comes last tells when all are done."""
    ready = 0
    for user in users:
        health = await client.command("health", user_id=user)
        ready += int(health["modes"]["general"]["ready"])
        if health["modes"]["general"]["pending"]:
            break
    return ready
