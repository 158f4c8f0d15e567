"""Turns through a service with outages, and the expected memories.

Each turn has a unique word, so that a query for it has one correct hit.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from modestream_client import MemoryClient, MemoryTimeout, MemoryUnreachable, Remembered
from modestream_client.hits import Hit

from tests.worlds.live.processes import eventually

USERS = 8
"""Enough users for every partition."""

AT_ONCE = 32
"""Concurrent turns."""

EVERY = 8
"""One of this many turns is asked for by its word; a question to which all are hits shows the others."""

ALL = 100
"""The most hits of a question."""


@dataclass(frozen=True, slots=True)
class FlowTurn:
    number: int

    @property
    def word(self) -> str:
        return f"crate{self.number}x"

    @property
    def user_id(self) -> str:
        return f"u{self.number % USERS}"

    @property
    def turn_id(self) -> str:
        return f"t-{self.number}"

    @property
    def content(self) -> str:
        return f"The box {self.word} was put on the shelf in the hall."


@dataclass
class Flow:
    """Publishes turns, repeats them while Kafka is unavailable and collects the replies."""

    client: MemoryClient
    top_k: int = 10
    """Requested hits of a query."""
    accepted: dict[FlowTurn, Remembered] = field(default_factory=dict)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def publish(self, numbers: Iterable[int]) -> None:
        await asyncio.gather(*(self._accepted(FlowTurn(number)) for number in numbers))

    async def until_accepted(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.accepted) >= count)

    async def _accepted(self, turn: FlowTurn) -> None:
        async with self._gate:
            while turn not in self.accepted:
                try:
                    answer = await self.client.remember(turn.content, turn_id=turn.turn_id, user_id=turn.user_id)
                except (MemoryTimeout, MemoryUnreachable):
                    await asyncio.sleep(0.2)
                    continue
                async with self._changed:
                    self.accepted[turn] = answer
                    self._changed.notify_all()

    async def check(self) -> None:
        """Check that exactly the accepted turns are found, once each, under the ids in their replies."""
        wrong = [turn for turn in list(self.accepted)[::EVERY] if not await self._is_right(turn)]
        assert not wrong
        for user in (f"u{number}" for number in range(USERS)):
            mine = {turn.turn_id: self.accepted[turn].memory_id for turn in self.accepted if turn.user_id == user}
            assert len(mine) <= ALL
            health = await self.client.command("health", user_id=user)
            assert health["modes"]["general"]["eligible"] == len(mine)
            answer = await self.client.retrieve("which box is on the shelf?", users=user, top_k=ALL)
            assert sorted((hit.turn_id, hit.memory_id) for hit in answer.hits) == sorted(mine.items())

    async def _is_right(self, turn: FlowTurn) -> bool:
        found = await hits_of(self.client, turn, self.top_k)
        return [hit.memory_id for hit in found] == [self.accepted[turn].memory_id]

    async def embedded(self) -> None:
        """Wait until every memory has a vector."""
        for user in {turn.user_id for turn in self.accepted}:
            await eventually(partial(all_ready, self.client, user), f"{user} has all vectors")


async def hits_of(client: MemoryClient, turn: FlowTurn, top_k: int = 10) -> list[Hit]:
    answer = await client.retrieve(turn.word, users=turn.user_id, top_k=top_k)
    assert "not_caught_up" not in [warning.code for warning in answer.warnings]
    return [hit for hit in answer.hits if turn.word in hit.text]


async def all_ready(client: MemoryClient, user_id: str) -> bool:
    modes = (await client.command("health", user_id=user_id))["modes"]
    return all(mode["ready"] == mode["eligible"] for mode in modes.values())
