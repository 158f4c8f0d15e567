"""The tests of each adapter: an agent of its framework, with a model that answers what the test says.

They run in the framework's own environment, with the built client, against the gateway at MODESTREAM_URL.
"""

import asyncio
import os
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from modestream_client import HttpMemoryClient, SyncHttpMemoryClient
from modestream_client.adapters import agent_memory

ARRIVES_WITHIN_S = 40.0
"""Longer than the longest pause of an outbox."""

ANSWERS_WITHIN_S = 15.0


@dataclass(frozen=True)
class Run:
    """A user's message, and what the model answers."""

    said: str
    answer: str = "Noted."
    conversation: str = "c1"
    run_id: str = "r1"


class Door:
    """An address of the gateway that can be closed: connections are refused, or taken and never answered."""

    def __init__(self) -> None:
        gateway = urlsplit(os.environ["MODESTREAM_URL"])
        self._gateway = gateway.hostname, gateway.port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._streams: set[asyncio.StreamWriter] = set()
        self._is_silent = False
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def open(self) -> None:
        """Let everything through."""
        self._is_silent = False
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()

    def close(self) -> None:
        """End connections, and refuse others."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()

    def silence(self) -> None:
        """Take connections, and let nothing through."""
        self._is_silent = True

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for stream in self._streams:
            stream.transport.abort()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._streams.add(writer)
        with suppress(OSError):
            inside, gateway = await asyncio.open_connection(*self._gateway)
            self._streams.add(gateway)
            await asyncio.gather(self._copy(reader, gateway), self._copy(inside, writer))

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while piece := await source.read(65536):
            if not self._is_silent:
                target.write(piece)
        target.close()


class AgentSuite(ABC):
    """What holds for each adapter. A subclass runs an agent of its framework."""

    kinds: ClassVar[tuple[str, ...]] = ("async", "sync")
    """Clients that the framework can have; the first one is in all tests."""

    @abstractmethod
    async def talk(self, memory: Any, user: str, run: Run) -> str:
        """Run an agent in a conversation; return the text of the model's first input."""

    def expected(self, run: Run) -> list[tuple[str | None, ...]]:
        return [("user", "Ana", run.said), ("assistant", "helper", run.answer)]

    @pytest.fixture
    def user(self) -> str:
        return f"user-{uuid4().hex}"

    @pytest.fixture
    def door(self) -> Iterator[Door]:
        with Door() as door:
            yield door

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "memory" in metafunc.fixturenames:
            is_enough = metafunc.function.__name__ != "test_a_second_conversation_remembers_the_first"
            metafunc.parametrize("kind", self.kinds[:1] if is_enough else self.kinds)

    @pytest.fixture
    async def memory(self, kind: str, door: Door, user: str, tmp_path: Path) -> AsyncIterator[Any]:
        if kind == "async":
            async with HttpMemoryClient(door.url, user_id=user, outbox=tmp_path) as memory:
                yield memory
        else:
            sync = SyncHttpMemoryClient(door.url, user_id=user, outbox=tmp_path)
            await asyncio.to_thread(sync.open)
            yield sync
            await asyncio.to_thread(sync.close)

    async def stored(self, user: str, number: int) -> list[tuple[str | None, ...]]:
        """Return conversation, role, speaker and text of a user's turns, in order, once there are so many."""
        async with (
            HttpMemoryClient(os.environ["MODESTREAM_URL"], user_id=user) as reader,
            asyncio.timeout(ARRIVES_WITHIN_S),
        ):
            while True:
                listed = [memory async for memory in reader.iter_memories(types=["episodic"])]
                if len(listed) >= number:
                    break
                await asyncio.sleep(0.1)
        listed.sort(key=lambda memory: memory.occurred_at)
        return [(turn.conversation_id, turn.role, turn.speaker, turn.text) for turn in listed]

    async def test_a_run_is_stored_as_turns_of_its_conversation(self, memory: Any, user: str) -> None:
        run = Run("The garage door sticks.", conversation="c7")
        await self.talk(memory, user, run)
        turns = self.expected(run)
        assert await self.stored(user, len(turns)) == [("c7", *turn) for turn in turns]

    async def test_a_second_conversation_remembers_the_first(self, memory: Any, user: str) -> None:
        first = Run("The garage door sticks.", conversation="first")
        await self.talk(memory, user, first)
        await self.stored(user, len(self.expected(first)))
        second = Run("What is wrong with the garage door?", "It sticks.", "second", "r2")
        assert first.said in await self.talk(memory, user, second)

    async def test_the_first_message_of_all_finds_not_itself(self, memory: Any, user: str) -> None:
        run = Run("The garage door sticks.")
        assert (await self.talk(memory, user, run)).count(run.said) == 1

    async def test_the_same_run_twice_is_stored_once(self, memory: Any, user: str) -> None:
        run = Run("The garage door sticks.")
        for _ in range(2):
            await self.talk(memory, user, run)
        other = Run("The bell is broken.", "Noted, too.", "c2", "r2")
        await self.talk(memory, user, other)
        turns = [text for *_, text in [*self.expected(run), *self.expected(other)]]
        assert [text for *_, text in await self.stored(user, len(turns))] == turns

    async def test_the_agent_answers_while_the_memory_is_away_and_turns_arrive_later(
        self, memory: Any, user: str, door: Door
    ) -> None:
        run = Run("The garage door sticks.")
        door.close()
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            assert run.said in await self.talk(memory, user, run)
        door.open()
        turns = self.expected(run)
        assert await self.stored(user, len(turns)) == [("c1", *turn) for turn in turns]

    async def test_the_agent_answers_while_the_memory_does_not(
        self, memory: Any, user: str, door: Door, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(agent_memory, "LIMIT_S", 0.2)
        run = Run("The garage door sticks.")
        door.silence()
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            assert run.said in await self.talk(memory, user, run)
        door.close()
        door.open()
        turns = self.expected(run)
        assert await self.stored(user, len(turns)) == [("c1", *turn) for turn in turns]
