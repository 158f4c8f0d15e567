"""What tests of modes ask of a map, and see there."""

from collections import Counter
from typing import Any

from tests.worlds.in_memory_pipeline import InMemoryMap, Json, turn


async def declare(the_map: InMemoryMap, name: str, embedder: str = "tiny32", **more: Any) -> Json:
    """What a mode is shown as, once it is declared."""
    reply = await the_map.command("declare_mode", name=name, embedder=embedder, **more)
    assert reply["status"] == "ok", reply
    return dict(reply["result"])


async def said(the_map: InMemoryMap, text: str, **fields: Any) -> Json:
    """What a turn was answered with, once it has its vector."""
    reply = await the_map.ask(the_map.names.turns, turn(text, text, **fields))
    assert reply["status"] == "ok", reply
    await the_map.topics.settled()
    return dict(reply["result"])


async def decided(the_map: InMemoryMap, text: str, **fields: Any) -> tuple[str, str]:
    """The mode of a turn, and who decided it."""
    accepted = await said(the_map, text, **fields)
    return accepted["mode"], accepted["mode_source"]


async def places(the_map: InMemoryMap) -> Counter[str]:
    """How many vectors lie in which collection, of those that have any."""
    found: Counter[str] = Counter()
    ids = [memory.memory_id for memory in the_map.memories.all()]
    for name, fingerprint in (await the_map.index.spaces()).items():
        mode = name.removesuffix(f"-{fingerprint.digest}")
        if there := await the_map.vectors_in(mode, fingerprint, ids):
            found[f"{mode}/{fingerprint.embedder}"] = len(there)
    return found


def code_of(reply: Json) -> str:
    """The code of an error."""
    return str(reply["error"]["code"])


async def in_mode(the_map: InMemoryMap, mode: str, query: str, **fields: Any) -> list[str]:
    """The texts that a search in one mode finds."""
    return await the_map.texts(query, mode=mode, **fields)
