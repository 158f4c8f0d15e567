"""Turns at a steady rate, each with the mode that a language model reads in it, and what became of them."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bench.texts import short_turns
from streams.client import MemoryClient

USERS = 8
MODES = ("journal", "code")
"""What the model says of every other turn; both are declared, and neither is a default."""

LOOK_EVERY_S = 0.2
"""Between two looks at a turn that is not understood yet; one that is costs one look."""

PATIENCE_S = 900.0
"""How long understanding may take before it is a defect."""


@dataclass(frozen=True, slots=True)
class Said:
    """One turn."""

    number: int
    text: str

    @property
    def user_id(self) -> str:
        """Whose it is."""
        return f"outage-{self.number % USERS}"

    @property
    def mode(self) -> str:
        """What the model makes of it."""
        return MODES[self.number // USERS % len(MODES)]

    @property
    def content(self) -> str:
        """What is published."""
        return f"{self.text} [[{self.mode}]]"


@dataclass
class Turns:
    """All turns of a run."""

    client: MemoryClient
    said: Sequence[Said]
    waited: dict[int, float] = field(default_factory=dict)
    """Seconds from the moment at which a turn was due until its reply, by number."""
    memory_ids: dict[int, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @classmethod
    def made(cls, client: MemoryClient, count: int) -> "Turns":
        """So many turns, the same each time."""
        return cls(client, [Said(number, text) for number, text in enumerate(short_turns(count, 9))])

    async def declare(self) -> None:
        """Declare the modes of all users."""
        for user in range(USERS):
            for mode in MODES:
                arguments = {"name": mode, "embedder": "general"}
                await self.client.command("declare_mode", arguments, user_id=f"outage-{user}")

    async def publish(self, numbers: Iterable[int], per_second: float) -> None:
        """Publish at this rate, whatever the replies take, and wait for the last one."""
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for place, number in enumerate(numbers):
                due = began + place / per_second
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                group.create_task(self._publish(self.said[number], due))

    async def _publish(self, said: Said, due: float) -> None:
        told = await self.client.remember(said.content, turn_id=f"t-{said.number}", user_id=said.user_id)
        self.waited[said.number] = time.perf_counter() - due
        self.memory_ids[said.number] = told.memory_id or ""

    async def understood(self, numbers: Iterable[int]) -> None:
        """Wait until each of these turns is understood by the model; notes what is not as it should be."""
        async with asyncio.timeout(PATIENCE_S):
            for number in numbers:
                while not await self._is_understood(self.said[number]):  # noqa: ASYNC110 - only asking tells
                    await asyncio.sleep(LOOK_EVERY_S)

    async def _is_understood(self, said: Said) -> bool:
        shown = await self.client.command(
            "get_memory", {"memory_id": self.memory_ids[said.number]}, user_id=said.user_id
        )
        if shown["understanding"] != "model":
            return False
        if (shown["text"], shown["version"], shown["mode"], shown["mode_source"]) != (
            *(said.content, 1),
            *(said.mode, "model"),
        ):
            self.wrong.append(f"turn {said.number} is {shown['mode']} by {shown['mode_source']}")
        return True

    async def counted(self) -> int:
        """Memories that there are, of all users."""
        asked = [self.client.command("health", user_id=f"outage-{user}") for user in range(USERS)]
        modes = [mode for health in await asyncio.gather(*asked) for mode in health["modes"].values()]
        return sum(int(mode["eligible"]) for mode in modes)
