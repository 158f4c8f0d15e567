"""A language model that is unavailable for a third of the turns, and a worker that is killed meanwhile.

Every turn is accepted at once, in the mode of its caller or the default. Finally the model has understood all turns;
those without a caller's mode are in the model's mode. Each has one vector, in its mode's collection.
"""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from modestream_client import MemoryClient, MemoryTimeout, MemoryUnreachable, Remembered

from tests.fakes.model_server import ModelServer
from tests.worlds.live.declared_modes import DIMS
from tests.worlds.live.processes import Deployment, Worker, eventually
from tests.worlds.live.vectors_on_disk import StoredVector, vectors_on_disk

USERS = ("u0", "u1", "u2")
MODES = {"code": "tiny32", "journal": "tiny48", "general": "general"}
TURNS = 120
THIRD = TURNS // 3
AT_ONCE = 12


@dataclass(frozen=True)
class ConversationTurn:
    number: int

    @property
    def text(self) -> str:
        """The text, with the mode that the model server answers."""
        mark = ("journal", "code", "journal", "undeclared")[self.number % 4]
        return f"The box crate{self.number}x is on the shelf. [[{mark}]]"

    @property
    def mode(self) -> str | None:
        return "code" if self.number % 4 == 2 else None

    @property
    def user_id(self) -> str:
        return USERS[self.number % len(USERS)]

    @property
    def decided(self) -> tuple[str, str]:
        """The expected mode and mode source."""
        return (("journal", "model"), ("code", "model"), ("code", "caller"), ("general", "fallback"))[self.number % 4]


@dataclass
class Conversation:
    client: MemoryClient
    accepted: dict[ConversationTurn, Remembered] = field(default_factory=dict)

    async def declare(self) -> None:
        for user_id in USERS:
            for name, embedder in MODES.items():
                if name != "general":
                    await self.client.command("declare_mode", {"name": name, "embedder": embedder}, user_id=user_id)

    async def publish(self, numbers: Iterable[int]) -> None:
        gate = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(self._publish(ConversationTurn(number), gate) for number in numbers))

    async def _publish(self, turn: ConversationTurn, gate: asyncio.Semaphore) -> None:
        async with gate:
            while turn not in self.accepted:
                try:
                    self.accepted[turn] = await self.client.remember(
                        turn.text, turn_id=f"t-{turn.number}", user_id=turn.user_id, mode=turn.mode
                    )
                except (MemoryTimeout, MemoryUnreachable):
                    continue

    async def check_unread(self, numbers: Iterable[int]) -> None:
        """Check that these turns are in the mode of their caller or the default, and are not understood."""
        for turn in map(ConversationTurn, numbers):
            shown = await self.shown(turn)
            mode, mode_source = ("code", "caller") if turn.mode else ("general", "fallback")
            assert self.accepted[turn].mode == mode
            assert self.accepted[turn].mode_source == mode_source
            assert shown["mode"] == mode
            assert shown["mode_source"] == mode_source
            assert shown["understanding"] == "pending"

    async def understood(self) -> bool:
        return all([await self._is_understood(turn) for turn in self.accepted])

    async def _is_understood(self, turn: ConversationTurn) -> bool:
        shown = await self.shown(turn)
        return (shown["understanding"], shown["embedding"]["status"]) == ("model", "ready")

    async def shown(self, turn: ConversationTurn) -> dict[str, Any]:
        memory_id = self.accepted[turn].memory_id
        return await self.client.command("get_memory", {"memory_id": memory_id}, user_id=turn.user_id)

    async def check(self) -> None:
        """Check that each turn is in its mode and found there, and that there are no others."""
        for turn in self.accepted:
            shown = await self.shown(turn)
            mode, mode_source = turn.decided
            assert shown["mode"] == mode
            assert shown["mode_source"] == mode_source
            assert shown["text"] == turn.text
            assert shown["version"] == 1
            assert shown["model"] == "default"
        for user_id in USERS:
            mine = [turn.decided[0] for turn in self.accepted if turn.user_id == user_id]
            health = (await self.client.command("health", user_id=user_id))["modes"]
            assert {mode: status["eligible"] for mode, status in health.items()} == {
                mode: mine.count(mode) for mode in MODES
            }

    def due_vectors(self) -> set[StoredVector]:
        return {
            StoredVector(accepted.memory_id or "", turn.decided[0], DIMS[MODES[turn.decided[0]]])
            for turn, accepted in self.accepted.items()
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
        await deployment.until_processed()
    assert await worker.terminate(within_s=20) == 0
    memory_ids = [accepted.memory_id or "" for accepted in conversation.accepted.values()]
    stored, counted = await vectors_on_disk(worker.data_dir, memory_ids, deployment.partitions)
    assert stored == conversation.due_vectors()
    assert counted == TURNS


async def live_through_an_outage(
    conversation: Conversation, server: ModelServer, deployment: Deployment, worker: Worker
) -> Worker:
    """Publish all turns with a kill of the worker in the middle; return the new worker."""
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
