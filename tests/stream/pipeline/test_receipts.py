"""Receipts of forgetting: the same for the same record, and `erased` once nothing is left."""

import hashlib
import json
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.memory.items import forgotten_event
from schemas.failures import Unavailable
from schemas.internal.changes import Change
from schemas.messages.published import Asked, RecordPlace
from schemas.scopes import Scope
from streams.flow.background.receipts import CheckReceipts
from streams.flow.steps.apply_changes import ForgetReceipts
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import turn_message


class Logs:
    """Logs of which a test says what is left."""

    def __init__(self) -> None:
        self.end, self.until, self.archived = 10, 0, set[str]()

    async def ends(self, partition: int) -> dict[str, int]:
        return {f"memory.turns:{partition}": self.end}

    async def erased_until(self, partition: int) -> dict[str, int]:
        return {f"memory.turns:{partition}": self.until}

    async def archived_texts(self, partition: int, memory_ids: Collection[str]) -> set[str]:
        return self.archived & set(memory_ids)


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    async with InMemoryPipeline(tmp_path).running() as running:
        yield running


async def forget_two(pipeline: InMemoryPipeline) -> dict[str, Any]:
    for number in range(2):
        await pipeline.ask(pipeline.names.turns, turn_message(f"The lamp {number} is broken.", f"t-{number}"))
    await pipeline.topics.settled()
    result: dict[str, Any] = (await pipeline.command("forget", conversation_id="c1"))["result"]
    await pipeline.topics.settled()
    return result


def told(pipeline: InMemoryPipeline) -> list[Any]:
    return [json.loads(record.value or b"null") for record in pipeline.topics.records(pipeline.names.receipts)]


async def look(pipeline: InMemoryPipeline, logs: Logs, *, erases_logs: bool = False) -> None:
    """Look once at all partitions, as a worker that has just started."""
    _, ctx = pipeline.wire(pipeline.tables.words)
    checking = CheckReceipts(ctx.receipts, pipeline.index, logs, ctx, erases_logs=erases_logs)
    for partition in range(pipeline.partitions):
        await checking.look(partition)


async def test_the_result_has_a_receipt_that_names_nobody(pipeline: InMemoryPipeline) -> None:
    result = await forget_two(pipeline)
    receipt = result["receipt"]
    assert receipt["forgotten"] == result["forgotten"] >= 2
    assert receipt["scope_digest"] == hashlib.sha256(f"{receipt['salt']}/u1".encode()).hexdigest()
    assert receipt["erase_by"] is None
    [hidden] = told(pipeline)
    assert hidden == receipt | {"schema": "receipt.v1", "state": "hidden"}
    assert "u1" not in json.dumps(hidden)


async def test_each_command_has_its_own(pipeline: InMemoryPipeline) -> None:
    first = await forget_two(pipeline)
    second = (await pipeline.command("forget", conversation_id="c1"))["result"]
    assert second["forgotten"] == second["receipt"]["forgotten"] == 0
    assert second["receipt"]["receipt_id"] != first["receipt"]["receipt_id"]


async def test_the_same_record_has_the_same_receipt_whatever_was_killed(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        receipt = (await forget_two(pipeline))["receipt"]
    pipeline.topics.forget_acknowledged(100, [pipeline.names.commands, pipeline.names.changes])
    async with pipeline.running():
        await pipeline.topics.settled()
        again = told(pipeline)[-1]
    assert {name: again[name] for name in receipt} == receipt


async def test_what_is_forgotten_again_after_a_kill_is_counted_once(pipeline: InMemoryPipeline) -> None:
    await pipeline.ask(pipeline.names.turns, turn_message("The lamp is broken.", "t-0"))
    memory, partition = pipeline.memory("The lamp is broken."), 0
    asked = Asked(place=RecordPlace(topic="memory.commands", partition=partition, offset=7), timestamp_ms=0)
    change = Change(scope=Scope(**memory.scope), action="forget", asked=asked)
    receipts = ForgetReceipts(pipeline.tables.receipts, pipeline.names.receipts, pipeline.clock, None)
    # The page was recovered from its changelog, and the removal of the memory, which is written later, was not.
    for _delivery in range(2):
        receipts.add(change, partition, [(memory, [forgotten_event(memory)])])
    receipt = receipts.close(change, partition)
    assert receipt
    assert receipt.forgotten == 1


async def test_a_receipt_says_erased_once_nothing_is_left(pipeline: InMemoryPipeline) -> None:
    receipt = (await forget_two(pipeline))["receipt"]
    await look(pipeline, Logs())
    last = told(pipeline)[-1]
    assert last["receipt_id"] == receipt["receipt_id"]
    assert last["state"] == "erased"
    assert last["looked_at"] == {"tables": 2, "lexical": 2, "vectors": 2, "archive": 2, "log_segments": None}
    await look(pipeline, Logs())
    assert [each["state"] for each in told(pipeline)] == ["hidden", "erased"]


async def test_bytes_of_a_file_that_wait_for_their_removal_are_not_erased(
    pipeline: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreachable(keys: Sequence[str]) -> None:
        raise Unavailable(f"{len(keys)} files stay")

    monkeypatch.setattr(pipeline.file_bytes, "remove", unreachable)
    uri = f"file:{'0' * 64}"
    turn = turn_message("Here is the contract.", "t-1", resources=[{"uri": uri}])
    memory_id = (await pipeline.ask(pipeline.names.turns, turn))["result"]["memory_id"]
    await pipeline.command("forget", memory_id=memory_id)
    await pipeline.topics.settled()
    await look(pipeline, Logs())
    assert told(pipeline)[-1]["state"] == "hidden"


async def test_what_the_archive_or_a_vector_still_has_is_not_erased(pipeline: InMemoryPipeline) -> None:
    await pipeline.ask(pipeline.names.turns, turn_message("The lamp is broken.", "t-0"))
    await pipeline.topics.settled()
    memory = pipeline.memory("The lamp is broken.")
    [collection] = pipeline.index.collections.values()
    vectors = dict(collection.points)
    await pipeline.command("forget", memory_id=memory.memory_id)
    await pipeline.topics.settled()
    logs = Logs()
    logs.archived = {memory.memory_id}
    await look(pipeline, logs)
    assert told(pipeline)[-1]["state"] == "hidden"
    logs.archived.clear()
    collection.points |= vectors
    await look(pipeline, logs)
    assert told(pipeline)[-1]["state"] == "hidden"


async def test_where_logs_are_erased_they_are_looked_at(pipeline: InMemoryPipeline) -> None:
    await forget_two(pipeline)
    logs = Logs()
    # The first look notes how far the logs go.
    for until, state in ((0, "hidden"), (9, "hidden"), (10, "erased")):
        logs.until = until
        await look(pipeline, logs, erases_logs=True)
        assert told(pipeline)[-1]["state"] == state
    assert told(pipeline)[-1]["looked_at"]["log_segments"] == 2
