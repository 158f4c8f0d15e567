"""What tests of modes ask of a map, and see there."""

from collections import Counter
from typing import Any

from tests.worlds.in_memory_pipeline import InMemoryPipeline, Json, turn


async def declare(pipeline: InMemoryPipeline, name: str, embedder: str = "tiny32", **more: Any) -> Json:
    """What a mode is shown as, once it is declared."""
    reply = await pipeline.command("declare_mode", name=name, embedder=embedder, **more)
    assert reply["status"] == "ok", reply
    return dict(reply["result"])


async def said(pipeline: InMemoryPipeline, text: str, **fields: Any) -> Json:
    """What a turn was answered with, once it has its vector."""
    reply = await pipeline.ask(pipeline.names.turns, turn(text, text, **fields))
    assert reply["status"] == "ok", reply
    await pipeline.topics.settled()
    return dict(reply["result"])


async def decided(pipeline: InMemoryPipeline, text: str, **fields: Any) -> tuple[str, str]:
    """The mode of a turn and its source."""
    accepted = await said(pipeline, text, **fields)
    return accepted["mode"], accepted["mode_source"]


async def places(pipeline: InMemoryPipeline) -> Counter[str]:
    """How many vectors lie in which collection, of those that have any."""
    found: Counter[str] = Counter()
    ids = [memory.memory_id for memory in pipeline.memories.all()]
    for name, fingerprint in (await pipeline.index.spaces()).items():
        mode = name.removesuffix(f"-{fingerprint.digest}")
        if there := await pipeline.vectors_in(mode, fingerprint, ids):
            found[f"{mode}/{fingerprint.embedder}"] = len(there)
    return found


def code_of(reply: Json) -> str:
    """The code of an error."""
    return str(reply["error"]["code"])


async def in_mode(pipeline: InMemoryPipeline, mode: str, query: str, **fields: Any) -> list[str]:
    """The texts that a search in one mode finds."""
    return await pipeline.texts(query, mode=mode, **fields)
