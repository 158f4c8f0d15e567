"""Records as Debezium's outbox event router publishes them, with the payload of `docs/kafka.md`."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from schemas.messages.records import Headers
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json

PAGE = (Path(__file__).parents[3] / "docs/kafka.md").read_text()
HEADERS: Headers = (("id", b"4d47e190-1a0d-4c4b-9b0a-0a3f8f0d0a11"), ("eventType", None))
"""The header that the router adds, and one of a column without a value."""


def documented_turn() -> Json:
    [payload] = re.findall(r"'turns', 'ana',\s+'(\{.*?\})'\);", PAGE, re.DOTALL)
    turn: Json = json.loads(payload)
    return turn


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        yield pipeline


async def publish(pipeline: InMemoryPipeline, message: Json) -> None:
    value = json.dumps(message).encode()
    await pipeline.publish(pipeline.names.turns, value, key=b"ana", headers=HEADERS)
    await pipeline.topics.settled()


async def contents(pipeline: InMemoryPipeline) -> list[str]:
    page = await pipeline.list_page(user="ana")
    return [memory["text"] for memory in page["result"]["items"]]


async def test_a_routed_row_is_a_turn(pipeline: InMemoryPipeline) -> None:
    await publish(pipeline, documented_turn())
    assert await contents(pipeline) == ["I moved to Turin."]


async def test_a_row_that_is_sent_again_is_stored_once(pipeline: InMemoryPipeline) -> None:
    for _ in range(2):
        await publish(pipeline, documented_turn())
    assert await contents(pipeline) == ["I moved to Turin."]


async def test_an_edited_row_replaces_the_text(pipeline: InMemoryPipeline) -> None:
    await publish(pipeline, documented_turn())
    await publish(pipeline, {**documented_turn(), "content": "I moved to Milan."})
    assert await contents(pipeline) == ["I moved to Milan."]


async def test_a_change_event_that_was_not_routed_is_a_dead_letter(pipeline: InMemoryPipeline) -> None:
    row = {"id": "1", "aggregateid": "ana", "payload": json.dumps(documented_turn())}
    await publish(pipeline, {"before": None, "after": row, "op": "c", "ts_ms": 1_772_357_400_000})
    [letter] = pipeline.topics.records(pipeline.names.dead_letters)
    assert letter.header("dead_letter_code") == b"unknown_schema"
