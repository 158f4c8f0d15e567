"""Turns of many users at a steady rate through a fault, and what is found of them afterwards.

A turn counts as in when its write was acknowledged; it is sent again only as long as it was not. Guaranteed: nothing
here repeats a turn that was acknowledged, so what is found is the system's own doing.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from modestream_client.calls import MemoryCalls
from modestream_client.failures import MemoryClientError

USERS = 8
"""Enough for every partition."""

IN_FLIGHT = 64
"""Writes that wait for their acknowledgement; further turns wait, as in a producer with a bounded buffer."""

RETRY_PAUSE_S = 0.2
POLL_S = 1.0
ATTEMPT_S = 10.0
"""Limit of one call; it is repeated until `PATIENCE_S` have passed."""

PATIENCE_S = 300.0

SAMPLE = 20
"""Turns that are asked for, besides that all are listed."""

Result = TypeVar("Result")


class Say(Protocol):
    """Writes one turn, and returns when it is acknowledged."""

    async def __call__(self, user_id: str, turn_id: str, content: str) -> object:
        """Raise a MemoryClientError if it is not."""


def say_over_kafka(client: MemoryCalls) -> Say:
    """Return a writer that waits for Kafka's acknowledgement and for no reply."""

    async def say(user_id: str, turn_id: str, content: str) -> object:
        return await client.remember(content, turn_id=turn_id, user_id=user_id, wait=False, timeout=ATTEMPT_S)

    return say


def say_over_http(client: MemoryCalls) -> Say:
    """Return a writer that waits for the gateway's answer."""

    async def say(user_id: str, turn_id: str, content: str) -> object:
        return await client.remember(content, turn_id=turn_id, user_id=user_id, timeout=ATTEMPT_S)

    return say


async def patiently(call: Callable[[], Awaitable[Result]], within_s: float = PATIENCE_S) -> Result:
    """Repeat a call until it is answered. Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while True:
            try:
                return await call()
            except MemoryClientError:
                await asyncio.sleep(RETRY_PAUSE_S)


@dataclass(frozen=True, slots=True)
class Counted:
    """What is there in the end."""

    turns: int
    found: int
    doubled: int


@dataclass
class Load:
    """The turns of one row."""

    client: MemoryCalls
    say: Say
    per_second: float
    name: str
    """Tells the users of this row from those of others in the same system."""
    acknowledged: dict[str, str] = field(default_factory=dict)
    """The user of each acknowledged turn, by turn id."""
    retried: int = 0
    _ends: asyncio.Event = field(default_factory=asyncio.Event)

    def users(self) -> list[str]:
        """Return the users of the load."""
        return [f"{self.name}-{number}" for number in range(USERS)]

    async def publish(self, at_least: int) -> None:
        """Publish at the rate until `end` was called and `at_least` turns are out; return when all are acknowledged."""
        gate, began, number = asyncio.Semaphore(IN_FLIGHT), time.perf_counter(), 0
        async with asyncio.TaskGroup() as group:
            while number < at_least or not self._ends.is_set():
                await asyncio.sleep(max(0.0, began + number / self.per_second - time.perf_counter()))
                await gate.acquire()
                group.create_task(self._published(number)).add_done_callback(lambda _: gate.release())
                number += 1

    def end(self) -> None:
        """Let `publish` end."""
        self._ends.set()

    async def _published(self, number: int) -> None:
        user_id, turn_id = f"{self.name}-{number % USERS}", f"t-{number}"
        while True:
            try:
                await self.say(user_id, turn_id, f"The box {word(number)} was put on the shelf in the hall.")
            except MemoryClientError:
                self.retried += 1
                await asyncio.sleep(RETRY_PAUSE_S)
            else:
                self.acknowledged[turn_id] = user_id
                return

    async def until_well(self) -> None:
        """Wait until all turns that are acknowledged by now can be found and have vectors."""
        wanted = Counter(self.acknowledged.values())
        for user_id in self.users():
            await patiently(partial(self._is_well, user_id, wanted[user_id]))

    async def _is_well(self, user_id: str, turns: int) -> None:
        while True:
            modes = (await self.client.command("health", user_id=user_id, timeout=ATTEMPT_S))["modes"]
            # Vectors are made in the order of a user's turns, and later turns are under way.
            if sum(mode["ready"] for mode in modes.values()) >= turns:
                return
            await asyncio.sleep(POLL_S)

    async def counted(self) -> Counted:
        """List all memories, and ask for a sample of the turns; a turn that is not answered counts as lost."""
        listed = Counter([turn_id for user_id in self.users() for turn_id in await self._listed(user_id)])
        found = {turn_id for turn_id in self.acknowledged if turn_id in listed}
        step = max(1, len(self.acknowledged) // SAMPLE)
        for turn_id in list(self.acknowledged)[::step]:
            if not await patiently(partial(self._is_answered, turn_id)):
                found.discard(turn_id)
        doubled = sum(count - 1 for count in listed.values())
        return Counted(len(self.acknowledged), len(found), doubled)

    async def _listed(self, user_id: str) -> list[str]:
        async def all_of_them() -> list[str]:
            pages = self.client.iter_memories(user_id=user_id, types=["episodic"], include_superseded=True)
            return [one.turn_id or "" async for one in pages]

        return await patiently(all_of_them)

    async def _is_answered(self, turn_id: str) -> bool:
        asked = word(int(turn_id.removeprefix("t-")))
        answer = await self.client.retrieve(asked, users=self.acknowledged[turn_id], timeout=ATTEMPT_S)
        return [hit.turn_id for hit in answer.hits if asked in hit.text] == [turn_id]


def word(number: int) -> str:
    """Return the word that only this turn has."""
    return f"crate{number}x"
