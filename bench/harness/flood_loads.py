"""Floods of one user: each prepares what it needs, then writes its records as fast as Kafka takes them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from aiokafka import AIOKafkaProducer
from modestream_client import MemoryClient

from bench.harness.texts import short_turns

FLOODER = "alice"
"""The user that floods."""

MODES = 60
MAX_RECORD_BYTES = 8 * 1024 * 1024
RESOURCES, RESOURCE_CHARS = 58, 32_768
"""The captions of a large turn: 1.9 MB."""
UNKNOWN_FIELDS = 700_000
"""Fields that no turn has, in one record: 6.6 MiB, each a value to parse."""
NEVER_WRITTEN = 10**15
"""An offset beyond any log."""


async def _nothing(_client: MemoryClient, _scale: float) -> None:
    """Prepare nothing."""


@dataclass(frozen=True, slots=True)
class Flood:
    """A load; `start` runs until all is written, or until it is cancelled."""

    start: Callable[[str, float], Coroutine[Any, Any, None]]
    prepare: Callable[[MemoryClient, float], Awaitable[None]] = _nothing


def _turns(count: int, texts: Callable[[int], Iterator[str]], **extra: object) -> Flood:
    async def start(bootstrap: str, scale: float) -> None:
        async with _producer(bootstrap) as producer:
            for number, text in enumerate(texts(max(1, round(count * scale)))):
                turn = _turn(number, text) | extra
                await producer.send("memory.turns", _record("turn.v1", turn), key=FLOODER.encode())

    return Flood(start)


def _many_values(interval_s: float) -> Flood:
    async def prepare(_client: MemoryClient, scale: float) -> None:
        _turn_of_many_fields(scale)

    async def start(bootstrap: str, scale: float) -> None:
        value = _turn_of_many_fields(scale)
        async with _producer(bootstrap) as producer:
            while True:
                await producer.send("memory.turns", value, key=FLOODER.encode())
                await asyncio.sleep(interval_s)

    return Flood(start, prepare)


@cache
def _turn_of_many_fields(scale: float) -> bytes:
    # Made before the flood: it takes half a second of the loop that also sends the other user's requests.
    unknown = {f"{number:x}": 1 for number in range(round(UNKNOWN_FIELDS * scale))}
    return json.dumps({"schema": "turn.v1", **_turn(0, "hello"), **unknown}, separators=(",", ":")).encode()


def _questions(
    count: int, prepare: Callable[[MemoryClient, float], Awaitable[None]] = _nothing, **extra: object
) -> Flood:
    async def start(bootstrap: str, scale: float) -> None:
        async with _producer(bootstrap) as producer:
            for number in range(max(1, round(count * scale))):
                await _ask(producer, number, "memory.replies", **extra)

    return Flood(start, prepare)


def _waiting(per_second: float) -> Flood:
    async def start(bootstrap: str, _scale: float) -> None:
        async with _producer(bootstrap) as producer:
            number = 0
            while True:
                await _ask(producer, number, "memory.replies", read_after=NEVER_WRITTEN)
                number += 1
                await asyncio.sleep(1 / per_second)

    return Flood(start)


def _unknown_topics(count: int) -> Flood:
    async def start(bootstrap: str, scale: float) -> None:
        async with _producer(bootstrap) as producer:
            for number in range(max(1, round(count * scale))):
                await _ask(producer, number, f"memory.replies.unknown-{number}")

    return Flood(start)


@asynccontextmanager
async def _producer(bootstrap: str) -> AsyncIterator[AIOKafkaProducer]:
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, linger_ms=5, max_request_size=MAX_RECORD_BYTES
    ) as producer:
        yield producer


async def _ask(producer: AIOKafkaProducer, number: int, reply_topic: str, **extra: object) -> None:
    question = {"scope": {"user_id": FLOODER}, "query": f"where is lantern {number}?", **extra}
    headers = [("reply_to", reply_topic.encode()), ("correlation_id", f"f-{number}".encode())]
    await producer.send("memory.retrieve", _record("retrieve.v1", question), key=FLOODER.encode(), headers=headers)


def _record(schema: str, fields: dict[str, object]) -> bytes:
    return json.dumps({"schema": schema, **fields}).encode()


def _turn(number: int, text: str) -> dict[str, object]:
    place = {"scope": {"user_id": FLOODER}, "conversation_id": f"c-{number // 400}"}
    return {"turn_id": f"t-{number}", "role": "user", "content": text, **place}


def _short(count: int) -> Iterator[str]:
    return iter(short_turns(count, 3))


def _facts(count: int) -> Iterator[str]:
    for n in range(count):
        yield f"My dentist is Dr. Number{n}. My locker code is {n}. I prefer tea{n} over coffee{n}."


def _resources() -> list[dict[str, str]]:
    """Return captions of 1.9 MB together; a turn's content is much more limited."""
    text = " ".join(short_turns(1000, 4))[:RESOURCE_CHARS]
    return [{"uri": f"file:///{number}", "text": text} for number in range(RESOURCES)]


async def _declare_modes(client: MemoryClient, _scale: float) -> None:
    for number in range(MODES):
        name = f"mode-{number}"
        await client.command("declare_mode", {"name": name, "embedder": "general"}, user_id=FLOODER)
        await client.remember(f"The lantern of {name} is lit.", mode=name, user_id=FLOODER)


FLOODS = {
    "turns": _turns(15_000, _short),
    "facts": _turns(4_000, _facts),
    "large": _turns(40, _short, resources=_resources()),
    "values": _many_values(1.5),
    "questions": _questions(3_000),
    "modes": _questions(40, _declare_modes, mode="*"),
    "read_after": _waiting(0.2),
    "read_after_many": _waiting(53),
    "reply_topics": _unknown_topics(300),
}
"""The floods of a hostile user, by name."""
