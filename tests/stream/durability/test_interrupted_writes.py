"""A kill between a record and what follows from it: words and vectors are those of the records in the end."""

from itertools import count
from pathlib import Path

import pytest

from streams.wire.partitioning import partition_of
from tests.worlds.consistency import assert_consistent
from tests.worlds.consolidation import consolidate, remember_many
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, command_message, turn_message

HERE = partition_of(b"u1", 1)

DECIDED = "We decided to use PostgreSQL for the ledger."

INTERRUPTED = {
    "text without its item": ("turns", turn_message("A quiet day at the lake.", "t-decided")),
    "text with another item": ("turns", turn_message("We decided to use SQLite for the ledger.", "t-decided")),
    "rename": ("commands", command_message("rename_mode", name="craft", new_name="trade")),
    "forget a conversation": (
        "commands",
        command_message("forget") | {"arguments": {"conversation_id": "of summaries"}},
    ),
}


async def prepared(directory: Path) -> InMemoryPipeline:
    """Return a stopped pipeline with turns, items, and a summary of turns of two conversations."""
    pipeline = InMemoryPipeline(directory, 1)
    async with pipeline.running():
        for name in ("code", "craft"):
            await pipeline.command("declare_mode", name=name, embedder="tiny32")
        await pipeline.remember(DECIDED, "t-decided", mode="craft")
        await remember_many(pipeline, 2, conversation_id="of summaries")
        await remember_many(pipeline, 2, "Watered the tomatoes in the greenhouse on day 2{}, they look healthy.")
        assert len((await consolidate(pipeline))["superseded"]) == 4
        await pipeline.topics.settled()
    return pipeline


async def killed(pipeline: InMemoryPipeline, topic: str, request: Json, after: int) -> bool:
    """Run a pipeline until it has written `after` records after a request; return whether it has more to write."""
    async with pipeline.running():
        pipeline.topics.stop_after(None)
        await pipeline.publish(topic, request)
        pipeline.topics.stop_after(after)
        await pipeline.until(lambda: pipeline.topics.refused or not pipeline.topics.unacknowledged(topic))
        is_interrupted = pipeline.topics.refused
    pipeline.topics.stop_after(None)
    return is_interrupted


@pytest.mark.parametrize("name", INTERRUPTED)
async def test_words_and_vectors_are_those_of_the_records(tmp_path: Path, name: str) -> None:
    topic, request = INTERRUPTED[name]
    before = await prepared(tmp_path / "before")
    for after in count():
        pipeline = before.copy_to(tmp_path / f"killed-{after}")
        is_interrupted = await killed(pipeline, f"memory.{topic}", request, after)
        async with pipeline.running():
            await pipeline.topics.settled()
        assert_consistent(pipeline, HERE, tmp_path / f"fresh-{after}")
        if not is_interrupted:
            break
