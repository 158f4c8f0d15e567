"""Throughput of the whole system: publish turns at once, and time until they are retrievable and embedded."""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aiokafka import AIOKafkaProducer
from modestream_client import MemoryClient

USERS = 8
"""Users, spread over the partitions."""

POLL_INTERVAL_S = 0.05
"""Between two checks of what is embedded: a hundredth of the measured time."""

MAX_RUN_S = 900.0
"""Time limit of a run."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A text and the role of its speaker."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Rates:
    """Turns per second, from the first record sent to Kafka."""

    retrievable: float
    embedded: float


async def ingest(
    bootstrap: str,
    texts: Sequence[str],
    label: str,
    *,
    users: int = USERS,
    garbage: Sequence[int] = (),
    poll_interval_s: float = POLL_INTERVAL_S,
    prefix: str = "memory.",
    roles: Sequence[str] = ("user",),
) -> Rates:
    """Publish the texts as turns of the new users `LABEL-0`, `LABEL-1`, ..., and wait until all are embedded.

    A record with invalid JSON is published before each place in `garbage`. Each poll for what is embedded costs the
    worker a command: where its processor time is measured, `poll_interval_s` is longer. `prefix` is that of the topics.
    The turns have the `roles` in rotation.
    """
    async with (
        MemoryClient(bootstrap, timeout=60, topic_prefix=prefix) as client,
        AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5) as producer,
        asyncio.timeout(MAX_RUN_S),
    ):
        names = [f"{label}-{number}" for number in range(users)]
        began = time.perf_counter()
        turns = [Turn(roles[number % len(roles)], text) for number, text in enumerate(texts)]
        ends = await _publish(producer, f"{prefix}turns", turns, names, frozenset(garbage))
        await asyncio.gather(*(_wait_until_retrievable(client, user, end) for user, end in ends.items()))
        retrievable = time.perf_counter() - began
        while await _count_embedded(client, ends) < len(texts):  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(poll_interval_s)
        return Rates(len(texts) / retrievable, len(texts) / (time.perf_counter() - began))


async def _publish(
    producer: AIOKafkaProducer, topic: str, turns: Sequence[Turn], users: Sequence[str], garbage: frozenset[int]
) -> Mapping[str, int]:
    """Publish all turns; return the offset of each user's last one."""
    last = {}
    for number, turn in enumerate(turns):
        user = users[number % len(users)]
        if number in garbage:
            await producer.send(topic, b"{no json " + turn.text.encode(), key=user.encode())
        last[user] = await producer.send(topic, _record(user, number, turn), key=user.encode())
    return {user: (await written).offset for user, written in last.items()}


def _record(user: str, number: int, turn: Turn) -> bytes:
    record = {
        "schema": "turn.v1",
        "turn_id": f"t-{number}",
        "scope": {"user_id": user},
        "conversation_id": f"c-{number // 400}",
        "role": turn.role,
        "content": turn.text,
    }
    return json.dumps(record).encode()


async def _wait_until_retrievable(client: MemoryClient, user: str, offset: int) -> None:
    """Wait until the turn at this offset is visible to a retrieve request."""
    while True:
        answer = await client.retrieve("anything", users=user, read_after=offset, top_k=1)
        if not any(warning.code == "not_caught_up" for warning in answer.warnings):
            return


async def _count_embedded(client: MemoryClient, users: Mapping[str, int]) -> int:
    """Count embedded turns, user by user, up to the first user with pending ones."""
    ready = 0
    for user in users:
        health = await client.command("health", user_id=user)
        ready += int(health["modes"]["general"]["ready"])
        if health["modes"]["general"]["pending"]:
            break
    return ready
