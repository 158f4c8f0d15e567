"""`kill -9` while users change modes and publish turns: accepted requests hold, others can be repeated.

Finally every turn is stored once, in the mode that its user's commands imply, with one vector in that mode's
collection; forgotten turns stay forgotten when all turns are published again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from random import Random
from typing import Any, TypeVar

import pytest
from modestream_client import MemoryClient, MemoryServiceError, MemoryTimeout, MemoryUnreachable, Remembered

from tests.worlds.live.declared_modes import DIMS, NOWHERE, Declarations, KnownMode, ModeCommand
from tests.worlds.live.flow import all_ready
from tests.worlds.live.processes import Deployment, eventually
from tests.worlds.live.vectors_on_disk import StoredVector, vectors_on_disk

USERS = 4
TURNS = 60
"""Turns of each user."""

AT_ONCE = 3
"""Concurrent turns of one user, besides one command."""

FIRST = ("declare", "declare", "declare")
THEN = ("declare", "rename", "rename", "embed_anew", "embed_anew", "delete_and_forget", "delete_and_move")
CORRECTIONS = ("correct",) * 5
LAST = ("rename", "embed_anew", "delete_and_forget", "delete_and_move")
COMMANDS = len(FIRST) + len(THEN) + len(CORRECTIONS) + len(LAST)

KILLS = 3
LONGEST_AFTERTHOUGHT_S = 0.15
"""Maximum delay of a kill after a reply, so that kills hit all later stages."""

Json = dict[str, Any]
Result = TypeVar("Result")


@dataclass
class Answers:
    """Counts the replies to all users."""

    count: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def more(self) -> None:
        """Count one reply."""
        async with self._changed:
            self.count += 1
            self._changed.notify_all()

    async def reached(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.count >= count)


@dataclass
class Speaker:
    """One user that publishes turns and sends commands one after another."""

    client: MemoryClient
    user_id: str
    chance: Random
    answers: Answers
    declared: Declarations = field(init=False)
    said: dict[str, Json] = field(default_factory=dict)
    """The published turn of each memory id."""
    refused: int = 0

    def __post_init__(self) -> None:
        """Begin without declarations."""
        self.declared = Declarations(self.chance)

    async def live(self) -> None:
        """Send all commands, and publish all turns concurrently."""
        for name in FIRST:
            await self._order(getattr(self.declared, name)())
        gate = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._govern())
            for number in range(TURNS):
                group.create_task(self._say(number, gate))

    async def _govern(self) -> None:
        names = [*THEN, *CORRECTIONS]
        self.chance.shuffle(names)
        for name in [*names, *LAST]:
            while not self.said:
                await asyncio.sleep(0.01)
            await self._order(getattr(self.declared, name)())

    async def _order(self, order: ModeCommand) -> None:
        """Repeat a command until it is answered; from then on its effect must hold."""
        await self._answered(partial(self.client.command, order.command, order.arguments, user_id=self.user_id))
        order.holds()
        await self.answers.more()
        await self._check_list()

    async def _check_list(self) -> None:
        listed = await self._answered(partial(self.client.command, "list_modes", user_id=self.user_id))
        modes = sorted((mode["name"], mode["embedder"]) for mode in listed["modes"])
        assert {"modes": modes, "user_default": listed["user_default"]} == self.declared.shown()

    async def _say(self, number: int, gate: asyncio.Semaphore) -> None:
        async with gate:
            mode = self.chance.choice([None, *(mode.name for mode in self.declared.living)])
            turn: Json = {
                "content": f"The box crate{number}x was put on the shelf.",
                "turn_id": f"t-{number}",
                "mode": mode,
                "user_id": self.user_id,
            }
            try:
                answer = await self._answered(partial(self.client.remember, **turn))
            except MemoryServiceError as refused:
                # The mode was renamed or deleted just before.
                if refused.code != "unknown_mode" or mode is None:
                    raise
                self.refused += 1
            else:
                self._note(answer, turn)
            await self.answers.more()

    def _note(self, answer: Remembered, turn: Json) -> None:
        assert answer.memory_id is not None
        assert answer.mode is not None
        self.said[answer.memory_id] = turn
        # A turn whose reply was lost may be forgotten by now.
        self.declared.kept[answer.memory_id] = NOWHERE if is_forgotten(answer) else answer.mode

    async def _answered(self, ask: Callable[[], Awaitable[Result]]) -> Result:
        while True:
            try:
                return await ask()
            except (MemoryTimeout, MemoryUnreachable):
                continue

    async def repeat_all(self) -> None:
        """Publish every accepted turn again, without effect."""
        for memory_id, turn in self.said.items():
            again = await self.client.remember(**turn)
            assert again.memory_id == memory_id
            assert again.duplicate is True
            assert is_forgotten(again) == (self.declared.place(memory_id) is None)

    async def check(self) -> None:
        """Check that each turn is found only in its expected mode, or is forgotten, and that there are no others."""
        await self._check_list()
        expected = {memory_id: self.declared.place(memory_id) for memory_id in self.said}
        assert {memory_id: await self._shown(memory_id) for memory_id in self.said} == {
            memory_id: mode and (mode.name, "ready") for memory_id, mode in expected.items()
        }
        health = (await self.client.command("health", user_id=self.user_id))["modes"]
        counted = {name: status["eligible"] for name, status in health.items()}
        assert counted == {mode.name: _number(mode, expected.values()) for mode in self.declared.living}
        for mode in self.declared.living:
            await self._check_found(mode, {memory_id for memory_id in expected if expected[memory_id] is mode})

    async def _shown(self, memory_id: str) -> tuple[str, str] | None:
        try:
            shown = await self.client.command("get_memory", {"memory_id": memory_id}, user_id=self.user_id)
        except MemoryServiceError as error:
            if error.code != "not_found":
                raise
            return None
        return shown["mode"], shown["embedding"]["status"]

    async def _check_found(self, mode: KnownMode, memory_ids: set[str]) -> None:
        answer = await self.client.retrieve("box shelf", users=self.user_id, mode=mode.name, top_k=100)
        assert answer.strategy == "hybrid"
        assert sorted(hit.memory_id for hit in answer.hits) == sorted(memory_ids)

    def due_vectors(self) -> set[StoredVector]:
        places = {memory_id: self.declared.place(memory_id) for memory_id in self.said}
        return {StoredVector(memory_id, mode.name, DIMS[mode.embedder]) for memory_id, mode in places.items() if mode}


def is_forgotten(answer: Remembered) -> bool:
    return "forgotten" in [warning.code for warning in answer.warnings]


def _number(mode: KnownMode, among: Collection[KnownMode | None]) -> int:
    return sum(each is mode for each in among)


@pytest.mark.parametrize("seed", [1])
async def test_modes_and_memories_survive_kills_of_the_worker(with_embedders: Deployment, seed: int) -> None:
    deployment, chance = with_embedders, Random(seed)
    worker = await deployment.ready()
    async with deployment.client(timeout=6.0) as client:
        answers = Answers()
        speakers = [Speaker(client, f"u{user}", Random(f"{seed} {user}"), answers) for user in range(USERS)]
        living = asyncio.gather(*(speaker.live() for speaker in speakers))
        for count in sorted(chance.sample(range(USERS * len(FIRST), USERS * (TURNS + COMMANDS)), KILLS)):
            # An error of any user ends the wait.
            waiting: list[asyncio.Future[Any]] = [living, asyncio.ensure_future(answers.reached(count))]
            await asyncio.wait(waiting, return_when="FIRST_COMPLETED")
            await asyncio.sleep(chance.uniform(0, LONGEST_AFTERTHOUGHT_S))
            await worker.kill()
            worker = deployment.start()
        await living
        await deployment.served_by(worker)
        await settled_and_right(client, speakers)
        await asyncio.gather(*(speaker.repeat_all() for speaker in speakers))
        await settled_and_right(client, speakers)
        await deployment.until_processed()
    assert await worker.terminate(within_s=20) == 0
    memory_ids = list(chain.from_iterable(speaker.said for speaker in speakers))
    stored, counted = await vectors_on_disk(worker.data_dir, memory_ids, deployment.partitions)
    due = set().union(*(speaker.due_vectors() for speaker in speakers))
    places = {memory_id: speaker.declared.place(memory_id) for speaker in speakers for memory_id in speaker.said}
    different = [(memory, places.get(memory.memory_id), memory in stored) for memory in stored ^ due]
    assert not different
    assert counted == len(stored)


async def settled_and_right(client: MemoryClient, speakers: Collection[Speaker]) -> None:
    """Wait until every memory has its vector, then check all users."""
    for speaker in speakers:
        await eventually(partial(all_ready, client, speaker.user_id), f"{speaker.user_id} has all vectors")
    await asyncio.gather(*(speaker.check() for speaker in speakers))
