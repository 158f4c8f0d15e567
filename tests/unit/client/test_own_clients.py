"""Clients of aiokafka correct themselves alone, and close within a moment whatever the other side does."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.errors import KafkaConnectionError, KafkaError
from modestream_client.kafka import own_clients
from modestream_client.kafka.closed_connections import write_if_open
from modestream_client.kafka.ended_fetches import fetch_until_closed
from modestream_client.kafka.own_clients import correct_connections


class SilentConnection:
    """A connection whose other side never says goodbye."""

    def __init__(self) -> None:
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writer: Any = SimpleNamespace(transport=SimpleNamespace(abort=lambda: self.closed.set_result(None)))

    def close(self) -> asyncio.Future[None]:
        """Begin the goodbye."""
        self._writer = None
        return self.closed


class OneConnection:
    """A client of aiokafka with one connection, as far as it is corrected."""

    def __init__(self, connection: Any) -> None:
        self._conns = {0: connection}

    async def bootstrap(self) -> None:
        """Lose the connection in the middle of the first request, as uvloop tells it."""
        raise RuntimeError("unable to perform operation; the handler is closed")

    async def _get_conn(self, _node: int) -> Any:
        return self._conns[0]

    async def close(self) -> None:
        """Wait for the goodbyes of all connections."""
        await asyncio.gather(*(connection.close() for connection in self._conns.values()))


async def test_silent_connection_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_clients, "CLOSE_S", 0)
    connection = SilentConnection()
    client = OneConnection(connection)
    correct_connections(client)
    async with asyncio.timeout(20):
        await client.close()
    assert connection.closed.done()


async def test_lost_connection_is_an_error_that_is_tried_again() -> None:
    class Closed:
        def close(self, reason: object) -> None:
            """Do nothing."""

    def send(_connection: object, _request: object) -> None:
        raise RuntimeError("unable to perform operation; the handler is closed")

    client: Any = OneConnection(Closed())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(own_clients, "_send", write_if_open(send))
        correct_connections(client)
        connection = await client._get_conn(0)
        with pytest.raises(KafkaConnectionError):
            connection.send("request")
    with pytest.raises(KafkaConnectionError):
        await client.bootstrap()


async def test_other_clients_of_the_process_stay_as_they_are() -> None:
    before = [dict(vars(one)) for one in (AIOKafkaClient, AIOKafkaConnection, Fetcher)]
    corrected, other = AIOKafkaClient(), AIOKafkaClient()
    correct_connections(corrected)
    assert [dict(vars(one)) for one in (AIOKafkaClient, AIOKafkaConnection, Fetcher)] == before
    assert "close" not in vars(other)


async def test_fetching_begins_again_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modestream_client.kafka.ended_fetches.READ_BACKOFF_S", 0)
    runs: list[str] = []

    async def run(name: str, *, fails: bool = False) -> None:
        runs.append(name)
        if fails:
            raise KafkaError("unexpected")

    fetcher = SimpleNamespace(_pending_tasks=set())
    await fetch_until_closed(fetcher, lambda: run("again"), run("first", fails=True))
    assert runs == ["first", "again"]
