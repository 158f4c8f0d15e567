"""Declarations, turns and searches for tests of modes."""

from collections import Counter
from typing import Any

from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, turn_message


async def declare(pipeline: InMemoryPipeline, name: str, embedder: str = "tiny32", **more: Any) -> Json:
    reply = await pipeline.command("declare_mode", name=name, embedder=embedder, **more)
    assert reply["status"] == "ok", reply
    return dict(reply["result"])


async def remember_turn(pipeline: InMemoryPipeline, text: str, **fields: Any) -> Json:
    reply = await pipeline.ask(pipeline.names.turns, turn_message(text, text, **fields))
    assert reply["status"] == "ok", reply
    await pipeline.topics.settled()
    return dict(reply["result"])


async def chosen_mode(pipeline: InMemoryPipeline, text: str, **fields: Any) -> tuple[str, str]:
    accepted = await remember_turn(pipeline, text, **fields)
    return accepted["mode"], accepted["mode_source"]


async def count_vectors(pipeline: InMemoryPipeline) -> Counter[str]:
    found: Counter[str] = Counter()
    ids = [memory.memory_id for memory in pipeline.memories.all()]
    for name, fingerprint in (await pipeline.index.spaces()).items():
        mode = name.removesuffix(f"-{fingerprint.digest}")
        if ids_in_mode := await pipeline.vectors_in(mode, fingerprint, ids):
            found[f"{mode}/{fingerprint.embedder}"] = len(ids_in_mode)
    return found


def code_of(reply: Json) -> str:
    return str(reply["error"]["code"])


async def search_mode(pipeline: InMemoryPipeline, mode: str, query: str, **fields: Any) -> list[str]:
    return await pipeline.texts(query, mode=mode, **fields)
