"""Clients of aiokafka correct themselves alone, and close within a moment whatever the other side does."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.errors import KafkaConnectionError, KafkaError
from modestream_client.kafka import own_clients
from modestream_client.kafka.own_clients import OwnConsumer, correct_connections, fetch_until_closed, write_if_open


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
        self._bootstrap_servers = "127.0.0.1:1"

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
    before = [dict(vars(patched)) for patched in (AIOKafkaClient, AIOKafkaConnection, Fetcher)]
    corrected, other = AIOKafkaClient(), AIOKafkaClient()
    correct_connections(corrected)
    assert [dict(vars(patched)) for patched in (AIOKafkaClient, AIOKafkaConnection, Fetcher)] == before
    assert "close" not in vars(other)


async def test_fetching_begins_again_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modestream_client.kafka.own_clients.READ_BACKOFF_S", 0)
    runs: list[str] = []

    async def run(name: str, *, fails: bool = False) -> None:
        runs.append(name)
        if fails:
            raise KafkaError("unexpected")

    fetcher = SimpleNamespace(_pending_tasks=set())
    await fetch_until_closed(fetcher, lambda: run("again"), run("first", fails=True))
    assert runs == ["first", "again"]


async def test_consumer_whose_fetch_has_just_begun_stops_without_an_end_of_its_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def stop(consumer: AIOKafkaConsumer) -> None:
        consumer._closed = True
        raise asyncio.CancelledError

    monkeypatch.setattr(AIOKafkaConsumer, "stop", stop)
    await OwnConsumer(bootstrap_servers="127.0.0.1:1").stop()


async def test_error_of_a_consumer_that_stops_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stop(consumer: AIOKafkaConsumer) -> None:
        consumer._closed = True
        raise KafkaError("not committed")

    monkeypatch.setattr(AIOKafkaConsumer, "stop", stop)
    with pytest.raises(KafkaError, match="not committed"):
        await OwnConsumer(bootstrap_servers="127.0.0.1:1").stop()


class Bootstrapping(AIOKafkaClient):  # type: ignore[misc] # aiokafka has no types
    """A client for which some addresses end a connection in the middle of its first request, as uvloop tells it."""

    def __init__(self, addresses: str | list[str], closing: set[str]) -> None:
        super().__init__(bootstrap_servers=addresses)
        self.closing = closing
        self.tried: list[str] = []
        correct_connections(self)

    async def bootstrap(self) -> None:
        """Try the addresses as aiokafka does, but for its connections."""
        for host, _, _ in self.hosts:
            self.tried.append(host)
            if host in self.closing:
                raise RuntimeError("unable to perform operation; the handler is closed")
            if host != "away":
                return
        raise KafkaConnectionError("Unable to bootstrap")


@pytest.mark.parametrize("addresses", ["a:1,b:1,c:1,away:1", ["a:1", "b:1", "c:1", "away:1"]])
async def test_address_that_closes_the_connection_leaves_the_others_to_be_tried(addresses: str | list[str]) -> None:
    client = Bootstrapping(addresses, {"a", "b"})
    await client.bootstrap()
    assert client.tried[-1] == "c"


async def test_every_address_is_tried_before_there_is_no_connection() -> None:
    client = Bootstrapping("a:1,b:1,away:1", {"a", "b"})
    with pytest.raises(KafkaConnectionError, match=r"a:1,b:1,away:1"):
        await client.bootstrap()
    assert sorted(client.tried) == ["a", "away", "b"]


async def test_addresses_stay_all_of_them_after_the_first_connection() -> None:
    client = Bootstrapping("a:1,b:1", {"a"})
    await client.bootstrap()
    assert {host for host, _, _ in client.hosts} == {"a", "b"}
