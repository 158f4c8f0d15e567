"""What clients and doors write can be written again by any Kafka tool, with other timestamps: the memories stay."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from modestream_client import MemoryCalls

from tests.harnesses.mcp import answer, in_process
from tests.worlds.gateway import http_over
from tests.worlds.in_memory_client import InMemoryTransport, client_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline

REPLAYS = 2


async def by_client(pipeline: InMemoryPipeline) -> None:
    await client_of(pipeline).remember("The kettle is blue.")


async def by_raw_request(pipeline: InMemoryPipeline) -> None:
    turn = {
        "schema": "turn.v1",
        "scope": {"user_id": "u1"},
        "conversation_id": "c1",
        "role": "user",
        "content": "The kettle is blue.",
    }
    await client_of(pipeline).request("turns", turn)


async def by_http(pipeline: InMemoryPipeline, **headers: str) -> None:
    turn = {"conversation_id": "c1", "role": "user", "content": "The kettle is blue."}
    async with http_over(InMemoryTransport(pipeline)) as http:
        (await http.post("/v1/users/u1/turns", json=turn, headers=headers)).raise_for_status()


async def by_idempotent_http(pipeline: InMemoryPipeline) -> None:
    await by_http(pipeline, **{"Idempotency-Key": "k1"})


async def by_mcp(pipeline: InMemoryPipeline) -> None:
    async with in_process(InMemoryTransport(pipeline)) as session:
        await answer(session, "add_memory", text="The kettle is blue.")


WRITERS = [by_client, by_raw_request, by_http, by_idempotent_http, by_mcp]

Write = Callable[[InMemoryPipeline], Awaitable[None]]


async def memories_of(memory: MemoryCalls) -> list[tuple[str, str]]:
    page = await memory.list_memories(projects="*", types=["episodic"])
    return [(item.memory_id, item.occurred_at) for item in page.items]


async def replay(pipeline: InMemoryPipeline, values: list[bytes | None]) -> None:
    """Write values once more, as a tool that keeps no timestamps; return when they are applied."""
    pipeline.clock.forward(3600)
    for value in values:
        message: dict[str, Any] = json.loads(value or b"null")
        await pipeline.ask(pipeline.names.turns, message)


@pytest.mark.parametrize("write", WRITERS)
async def test_records_again_leave_the_same_memories(pipeline: InMemoryPipeline, write: Write) -> None:
    await write(pipeline)
    memory = client_of(pipeline)
    before = await memories_of(memory)
    values = [record.value for record in pipeline.topics.records(pipeline.names.turns)]
    for _ in range(REPLAYS):
        await replay(pipeline, values)
    assert len(before) == 1
    assert await memories_of(memory) == before


@pytest.mark.parametrize("write", WRITERS)
async def test_record_names_its_turn_and_its_time(pipeline: InMemoryPipeline, write: Write) -> None:
    await write(pipeline)
    [record] = pipeline.topics.records(pipeline.names.turns)
    turn = json.loads(record.value or b"null")
    assert turn["turn_id"]
    assert turn["occurred_at"]


async def test_id_is_the_one_that_the_worker_derives(pipeline: InMemoryPipeline) -> None:
    when = "2026-03-01T09:30:00Z"
    said = await client_of(pipeline).remember("The kettle is blue.", conversation_id="c1", occurred_at=when)
    turn = {"schema": "turn.v1", "scope": {"user_id": "u1"}, "conversation_id": "c1", "role": "user"}
    reply = await pipeline.ask(
        pipeline.names.turns, {**turn, "content": "The kettle is blue.", "occurred_at": "2026-03-01T10:30:00+01:00"}
    )
    assert reply["result"]["duplicate"]
    assert reply["result"]["turn_id"] == said.turn_id


async def test_edit_by_the_callers_id_keeps_its_time(pipeline: InMemoryPipeline) -> None:
    memory = client_of(pipeline)
    await memory.remember("The kettle is blue.", turn_id="t", occurred_at="2026-03-01T09:30:00Z")
    await memory.remember("The kettle is red.", turn_id="t")
    assert [when for _, when in await memories_of(memory)] == ["2026-03-01T09:30:00Z"]
