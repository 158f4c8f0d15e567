"""What the map does, seen from outside: which agent reads which topic, and where each reader writes."""

import io
import pickle
from dataclasses import fields
from pathlib import Path
from typing import Any, cast, get_type_hints

from streams.flow.surroundings import Surroundings
from streams.topology import Agents, steps
from tests.stream.in_memory_map import InMemoryMap, turn
from tests.stream.in_memory_publisher import Arrow


class Stand:
    """Stands where an agent or a part of the surroundings would."""

    def __init__(self, name: str = "") -> None:
        self.name = name


class Holds(pickle.Pickler):
    """Walks through everything that a step holds, and notes the agents."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.agents: set[str] = set()

    def persistent_id(self, held: Any) -> str | None:
        if isinstance(held, Stand):
            self.agents |= {held.name} - {""}
            return "stand"
        return None


def deciders() -> dict[str, str]:
    """For each topic that is read the agent that decides there, by its class."""
    agents = Agents(**cast("Any", {name: Stand(kind.__name__) for name, kind in get_type_hints(Agents).items()}))
    topics = InMemoryMap(Path()).names
    parts = {field.name: Stand() for field in fields(Surroundings)} | {"topics": topics, "partitions": 4}
    return {topic: _held(step) for topic, step in steps(agents, Surroundings(**cast("Any", parts))).items()}


def _held(step: object) -> str:
    walk = Holds()
    walk.dump(vars(step))
    [name] = walk.agents
    return name


async def observed_arrows(directory: Path) -> set[Arrow]:
    """Where each topic's reader writes, seen while everything happens that makes it write."""
    async with InMemoryMap(directory).running() as the_map:
        names = the_map.names
        for topic in (names.turns, names.retrieve, names.commands, names.consolidate):
            await the_map.ask(topic, b"nonsense")
            await the_map.publish(topic, b"nonsense")
        for topic in (names.remembered, names.embedded):
            await the_map.publish(topic, b"nonsense")
        accepted = await the_map.ask(names.turns, turn("Tea, please.", "t-1"))
        await the_map.retrieve("tea")
        await the_map.command("get_memory", memory_id=accepted["result"]["memory_id"])
        await the_map.topics.settled()
        await _lose_the_vector(the_map)
        await the_map.topics.settled()
        return {(reader, topic) for reader, topic in the_map.arrows if reader}


async def _lose_the_vector(the_map: InMemoryMap) -> None:
    """Say of a vector that it is not there, as a worker does that finds it missing."""
    [told] = the_map.topics.records(the_map.names.embedded)[-1:]
    stale = (told.value or b"").replace(b'"ready"', b'"stale"')
    await the_map.publish(the_map.names.embedded, stale, key=told.key)
