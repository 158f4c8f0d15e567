"""Turns that flow through a service that is disturbed, and what must be found of them afterwards.

Each turn has a word of its own, so that a question for it has one right answer.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from schemas.messages.retrieval import Hit
from streams.client import MemoryClient, MemoryTimeout, MemoryUnreachable, Remembered
from tests.worlds.live.processes import eventually

USERS = 8
"""Enough for every partition to have some."""

AT_ONCE = 32
"""Turns under way at the same time."""


@dataclass(frozen=True, slots=True)
class Told:
    """One turn that is published."""

    number: int

    @property
    def word(self) -> str:
        """What only this turn says."""
        return f"crate{self.number}x"

    @property
    def user_id(self) -> str:
        """Whose turn it is."""
        return f"u{self.number % USERS}"

    @property
    def turn_id(self) -> str:
        """Its id."""
        return f"t-{self.number}"

    @property
    def content(self) -> str:
        """Its text."""
        return f"The box {self.word} was put on the shelf in the hall."


@dataclass
class Flow:
    """Publishes turns one after another, again while Kafka is away, and keeps what was replied."""

    client: MemoryClient
    top_k: int = 10
    """How many hits of a question are looked at."""
    accepted: dict[Told, Remembered] = field(default_factory=dict)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def publish(self, numbers: Iterable[int]) -> None:
        """Publish turns until each is accepted."""
        await asyncio.gather(*(self._accepted(Told(number)) for number in numbers))

    async def reached(self, count: int) -> None:
        """Wait until so many are accepted."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.accepted) >= count)

    async def _accepted(self, told: Told) -> None:
        async with self._gate:
            while told not in self.accepted:
                try:
                    answer = await self.client.remember(told.content, turn_id=told.turn_id, user_id=told.user_id)
                except (MemoryTimeout, MemoryUnreachable):
                    await asyncio.sleep(0.2)
                    continue
                async with self._changed:
                    self.accepted[told] = answer
                    self._changed.notify_all()

    async def check(self) -> None:
        """Every accepted turn is found, once, under the id that its reply announced, and there are no others."""
        wrong = [told for told in self.accepted if not await self._is_right(told)]
        assert not wrong
        for user in range(USERS):
            mine = sum(told.user_id == f"u{user}" for told in self.accepted)
            health = await self.client.command("health", user_id=f"u{user}")
            assert health["modes"]["general"]["eligible"] == mine

    async def _is_right(self, told: Told) -> bool:
        found = await found_for(self.client, told, self.top_k)
        return [hit.memory_id for hit in found] == [self.accepted[told].memory_id]

    async def embedded(self) -> None:
        """Wait until every memory has its vector."""
        for user in {told.user_id for told in self.accepted}:
            await eventually(partial(all_ready, self.client, user), f"{user} has all vectors")


async def found_for(client: MemoryClient, told: Told, top_k: int = 10) -> list[Hit]:
    """What is found of a turn: the hits with its word."""
    answer = await client.retrieve(told.word, users=told.user_id, top_k=top_k)
    assert "not_caught_up" not in [warning.code for warning in answer.warnings]
    return [hit for hit in answer.hits if told.word in hit.text]


async def all_ready(client: MemoryClient, user_id: str) -> bool:
    """Whether all memories of a user have their vectors."""
    modes = (await client.command("health", user_id=user_id))["modes"]
    return all(mode["ready"] == mode["eligible"] for mode in modes.values())
