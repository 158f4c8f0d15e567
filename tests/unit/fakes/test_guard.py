"""The guard against other hosts and brokers in `tests/conftest.py`."""

import socket
from collections.abc import Callable
from unittest.mock import create_autospec

import pytest

from streams.up.broker import KafkaBroker

ELSEWHERE = ("192.0.2.1", 9)
CALLS: dict[str, Callable[[socket.socket], object]] = {
    "connect": lambda unconnected: unconnected.connect(ELSEWHERE),
    "connect_ex": lambda unconnected: unconnected.connect_ex(ELSEWHERE),
    "sendto": lambda unconnected: unconnected.sendto(b"", ELSEWHERE),
}


@pytest.mark.parametrize("name", CALLS)
def test_connection_to_another_host_is_rejected(name: str) -> None:
    with socket.socket() as unconnected, pytest.raises(AssertionError, match=r"192\.0\.2\.1"):
        CALLS[name](unconnected)


def test_connection_to_loopback_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())


async def test_start_of_a_broker_is_rejected() -> None:
    with pytest.raises(AssertionError, match="starts a broker"):
        await KafkaBroker.start(create_autospec(KafkaBroker))
