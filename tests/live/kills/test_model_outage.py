"""A language model that is away for a third of the turns, and a worker that is killed meanwhile: nothing waits for it.

Every turn is accepted at once, in the mode that caller or default give it, and in the end understood by the model, in
the mode that the model says where the caller said nothing, with one vector and that in this mode's collection.
"""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from streams.client import MemoryClient, MemoryTimeout, MemoryUnreachable, Remembered
from tests.fakes.model_server import ModelServer
from tests.worlds.live.declared_modes import DIMS
from tests.worlds.live.processes import Deployment, Worker, eventually
from tests.worlds.live.vectors_on_disk import Lying, vectors_on_disk

USERS = ("u0", "u1", "u2")
MODES = {"code": "tiny32", "journal": "tiny48", "general": "general"}
TURNS = 120
THIRD = TURNS // 3
AT_ONCE = 12


@dataclass(frozen=True)
class Said:
    """One turn, of one of four kinds, and what must become of it."""

    number: int

    @property
    def text(self) -> str:
        """Its text, with the mode that the model server reads in it."""
        mark = ("journal", "code", "journal", "undeclared")[self.number % 4]
        return f"The box crate{self.number}x is on the shelf. [[{mark}]]"

    @property
    def mode(self) -> str | None:
        """What its caller says."""
        return "code" if self.number % 4 == 2 else None

    @property
    def user_id(self) -> str:
        """Whose it is."""
        return USERS[self.number % len(USERS)]

    @property
    def decided(self) -> tuple[str, str]:
        """Its final mode and the source of the mode."""
        return (("journal", "model"), ("code", "model"), ("code", "caller"), ("general", "fallback"))[self.number % 4]


@dataclass
class Conversation:
    """Turns that are published, and their memories."""

    client: MemoryClient
    accepted: dict[Said, Remembered] = field(default_factory=dict)

    async def declare(self) -> None:
        """Declare all modes, for all users."""
        for user_id in USERS:
            for name, embedder in MODES.items():
                if name != "general":
                    await self.client.command("declare_mode", {"name": name, "embedder": embedder}, user_id=user_id)

    async def publish(self, numbers: Iterable[int]) -> None:
        """Publish turns until all are accepted."""
        gate = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(self._publish(Said(number), gate) for number in numbers))

    async def _publish(self, said: Said, gate: asyncio.Semaphore) -> None:
        async with gate:
            while said not in self.accepted:
                try:
                    self.accepted[said] = await self.client.remember(
                        said.text, turn_id=f"t-{said.number}", user_id=said.user_id, mode=said.mode
                    )
                except (MemoryTimeout, MemoryUnreachable):
                    continue

    async def check_unread(self, numbers: Iterable[int]) -> None:
        """These turns are accepted in the mode of their caller, or the default, and are still to be understood."""
        for said in map(Said, numbers):
            shown = await self.shown(said)
            decided = ("code", "caller") if said.mode else ("general", "fallback")
            assert (self.accepted[said].mode, self.accepted[said].mode_source) == decided
            assert (shown["mode"], shown["mode_source"], shown["understanding"]) == (*decided, "pending")

    async def understood(self) -> bool:
        """Whether every turn is, and has its vector."""
        return all([await self._is_understood(said) for said in self.accepted])

    async def _is_understood(self, said: Said) -> bool:
        shown = await self.shown(said)
        return (shown["understanding"], shown["embedding"]["status"]) == ("model", "ready")

    async def shown(self, said: Said) -> dict[str, Any]:
        """The record of a turn."""
        memory_id = self.accepted[said].memory_id
        return await self.client.command("get_memory", {"memory_id": memory_id}, user_id=said.user_id)

    async def check(self) -> None:
        """Each turn is in its mode and found there, and there are no others."""
        for said in self.accepted:
            shown = await self.shown(said)
            assert (shown["mode"], shown["mode_source"]) == said.decided
            assert (shown["text"], shown["version"], shown["model"]) == (said.text, 1, "default")
        for user_id in USERS:
            mine = [said.decided[0] for said in self.accepted if said.user_id == user_id]
            health = (await self.client.command("health", user_id=user_id))["modes"]
            assert {mode: stands["eligible"] for mode, stands in health.items()} == {
                mode: mine.count(mode) for mode in MODES
            }

    def due_vectors(self) -> set[Lying]:
        """Where the vectors of all turns must lie."""
        return {
            Lying(told.memory_id or "", said.decided[0], DIMS[MODES[said.decided[0]]])
            for said, told in self.accepted.items()
        }


async def test_turns_of_a_model_outage_are_understood_after_a_kill(with_embedders: Deployment) -> None:
    deployment = with_embedders
    async with ModelServer() as server:
        profile = {"model": "openai/fake", "api_base": server.url, "timeout_s": 2.0, "retries": 1}
        deployment.more |= {"LLM_PROFILES": json.dumps({"default": profile}), "LLM_BACKLOG_PER_SECOND": "200"}
        worker = await deployment.ready()
        async with deployment.client() as client:
            conversation = Conversation(client)
            worker = await live_through_an_outage(conversation, server, deployment, worker)
            await eventually(conversation.understood, "every turn is understood and embedded")
            await conversation.check()
        await deployment.at_rest()
    assert await worker.terminate(within_s=20) == 0
    memory_ids = [told.memory_id or "" for told in conversation.accepted.values()]
    lying, counted = await vectors_on_disk(worker.data_dir, memory_ids, deployment.partitions)
    assert lying == conversation.due_vectors()
    assert counted == TURNS


async def live_through_an_outage(
    conversation: Conversation, server: ModelServer, deployment: Deployment, worker: Worker
) -> Worker:
    """Publish all turns; the worker is killed in the middle, and another one is given back."""
    await conversation.declare()
    await conversation.publish(range(THIRD))
    server.become("hang")
    await conversation.publish(range(THIRD, THIRD + THIRD // 2))
    more = asyncio.create_task(conversation.publish(range(THIRD + THIRD // 2, 2 * THIRD)))
    await worker.kill()
    server.become("close")
    worker = await deployment.ready()
    await more
    await conversation.check_unread(range(THIRD, 2 * THIRD))
    server.become("ok")
    await conversation.publish(range(2 * THIRD, TURNS))
    return worker
