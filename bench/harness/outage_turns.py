"""Publish turns at a steady rate, each with the mode that the fake language model will give, and check the results."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from modestream_client import MemoryClient

from bench.harness.texts import short_turns

USERS = 8
MODES = ("journal", "code")
"""The model's answers, alternating; both are declared, neither is a default."""

POLL_INTERVAL_S = 0.2
"""Between two checks of a turn that is not understood yet."""

MAX_UNDERSTANDING_S = 900.0
"""Time limit for understanding all turns."""


@dataclass(frozen=True, slots=True)
class TaggedTurn:
    """One turn."""

    number: int
    text: str

    @property
    def user_id(self) -> str:
        """The user of the turn."""
        return f"outage-{self.number % USERS}"

    @property
    def mode(self) -> str:
        """The mode that the model will give."""
        return MODES[self.number // USERS % len(MODES)]

    @property
    def content(self) -> str:
        """The published text."""
        return f"{self.text} [[{self.mode}]]"


@dataclass
class Turns:
    """All turns of a run."""

    client: MemoryClient
    tagged: Sequence[TaggedTurn]
    reply_s: dict[int, float] = field(default_factory=dict)
    """Seconds from the moment at which a turn was due until its reply, by number."""
    memory_ids: dict[int, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @classmethod
    def create(cls, client: MemoryClient, count: int) -> "Turns":
        """Return new turns; deterministic."""
        return cls(client, [TaggedTurn(number, text) for number, text in enumerate(short_turns(count, 9))])

    async def declare(self) -> None:
        """Declare the modes of all users."""
        for user in range(USERS):
            for mode in MODES:
                arguments = {"name": mode, "embedder": "general"}
                await self.client.command("declare_mode", arguments, user_id=f"outage-{user}")

    async def publish(self, numbers: Iterable[int], per_second: float) -> None:
        """Publish at this rate, regardless of the latency of replies, and wait for the last reply."""
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for place, number in enumerate(numbers):
                due = began + place / per_second
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                group.create_task(self._publish(self.tagged[number], due))

    async def _publish(self, tagged: TaggedTurn, due: float) -> None:
        accepted = await self.client.remember(tagged.content, turn_id=f"t-{tagged.number}", user_id=tagged.user_id)
        self.reply_s[tagged.number] = time.perf_counter() - due
        self.memory_ids[tagged.number] = accepted.memory_id or ""

    async def wait_until_understood(self, numbers: Iterable[int]) -> None:
        """Wait until the model has read each of these turns; record wrong results in `wrong`."""
        async with asyncio.timeout(MAX_UNDERSTANDING_S):
            for number in numbers:
                while not await self._is_understood(self.tagged[number]):  # noqa: ASYNC110 - there is no event to await
                    await asyncio.sleep(POLL_INTERVAL_S)

    async def _is_understood(self, tagged: TaggedTurn) -> bool:
        shown = await self.client.command(
            "get_memory", {"memory_id": self.memory_ids[tagged.number]}, user_id=tagged.user_id
        )
        if shown["understanding"] != "model":
            return False
        if (shown["text"], shown["version"], shown["mode"], shown["mode_source"]) != (
            *(tagged.content, 1),
            *(tagged.mode, "model"),
        ):
            self.wrong.append(f"turn {tagged.number} is {shown['mode']} by {shown['mode_source']}")
        return True

    async def count_stored(self) -> int:
        """Count the memories of all users."""
        healths = [self.client.command("health", user_id=f"outage-{user}") for user in range(USERS)]
        modes = [mode for health in await asyncio.gather(*healths) for mode in health["modes"].values()]
        return sum(int(mode["eligible"]) for mode in modes)
