"""Which texts a process may have died over: those that it was at."""

import asyncio
from collections.abc import Collection
from typing import Any, cast

import pytest

from schemas.failures import Unavailable
from streams.adapters.embedding.process import frames
from streams.adapters.embedding.process.child_pipes import EmbedderChild, EmbeddingRequest, TextDeaths


class DyingProcess:
    """In place of an `EmbedderProcess`: it dies over its first texts. `at` has the keys of those that it was at."""

    pid = 0

    def __init__(self, at: Collection[bytes]) -> None:
        self._at = at
        self._reader: asyncio.Protocol

    def read(self, _length: int) -> bytes:
        """Say nothing."""
        return b""

    def reason(self) -> str:
        """Return none."""
        return ""

    async def connect(self, reader: asyncio.Protocol) -> asyncio.WriteTransport:
        """Let the session write to nowhere."""
        self._reader = reader
        return Nowhere(reader)

    def under_way(self) -> Collection[bytes]:
        return self._at

    def abandon(self) -> None:
        """Do nothing."""

    def kill(self) -> None:
        """Do nothing."""

    async def end(self, _writing: asyncio.WriteTransport | None) -> None:
        """Do nothing."""


class Nowhere(asyncio.WriteTransport):
    """Closes the connection after the first texts."""

    def __init__(self, reader: asyncio.Protocol) -> None:
        super().__init__()
        self._reader = reader

    def write(self, _data: object) -> None:
        asyncio.get_running_loop().call_soon(self._reader.connection_lost, None)


def key(text: str) -> bytes:
    return frames.request_key(frames.encode_request("", text))


async def deaths_over(text: str, at: Collection[bytes]) -> int:
    """Return the deaths that count against a text that was alone in the pipe of this worker."""
    deaths = TextDeaths()
    session = EmbedderChild(cast("Any", DyingProcess(at)), deaths=deaths)
    with pytest.raises(Unavailable):
        await session.ask(frames.PASSAGE, "", text, "u1")
    await session.end()
    answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    return deaths.of(EmbeddingRequest(frames.PASSAGE, "", text, answer))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at", "counted"),
    [({key("red")}, 1), ({key("red"), key("of another worker")}, 1), ({key("of another worker")}, 0), ((), 0)],
)
async def test_text_counts_as_suspect_if_the_process_was_at_it(at: Collection[bytes], counted: int) -> None:
    assert await deaths_over("red", at) == counted


async def test_only_a_text_that_was_alone_is_counted_again() -> None:
    answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    request = EmbeddingRequest(frames.PASSAGE, "", "red", answer)  # type: ignore[arg-type]
    deaths = TextDeaths()
    for at, counted in (((key("red"), key("bad")), 1), ((key("red"), key("bad")), 1), ((key("red"),), 2)):
        deaths.add([request], at)
        assert deaths.of(request) == counted
