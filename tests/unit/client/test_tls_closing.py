"""Connections over TLS are let go of at once, also on uvloop while data arrives: it waits 30 s for the other side."""

import asyncio
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiokafka.conn import AIOKafkaProtocol
from modestream_client.kafka.own_clients import correct_connections

LIMIT_S = 15.0
"""Far more than a goodbye takes, far less than 30 s."""

PIECE = b"x" * 65536


@pytest.fixture
def flooding(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """The address of a server that writes to every connection and never says goodbye."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, "-subj", "/CN=localhost"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=flood, args=(listening, context), daemon=True).start()
        yield listening.getsockname()


def flood(listening: socket.socket, context: ssl.SSLContext) -> None:
    """Write to one connection until it is gone."""
    accepted, _ = listening.accept()
    with context.wrap_socket(accepted, server_side=True) as connection:
        try:
            while True:
                connection.sendall(PIECE)
        except OSError:
            return


class Connected:
    """A connection of aiokafka, as far as it is closed."""

    def __init__(self, writer: asyncio.StreamWriter, closed: asyncio.Future[None]) -> None:
        self._writer = writer
        self._closed = closed

    def close(self) -> asyncio.Future[None]:
        """Begin the goodbye."""
        self._writer.close()
        return self._closed


class Client:
    def __init__(self, connection: Connected) -> None:
        self._conns = {0: connection}

    async def bootstrap(self) -> None:
        """Do nothing."""

    async def _get_conn(self, node: int) -> Connected:
        return self._conns[node]

    async def close(self) -> None:
        """Wait for the goodbyes of all connections."""
        await asyncio.gather(*(connection.close() for connection in self._conns.values()))


async def connect(address: tuple[str, int]) -> Client:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    loop = asyncio.get_running_loop()
    closed, reader = loop.create_future(), asyncio.StreamReader()
    protocol: Any = AIOKafkaProtocol(closed, reader, loop=loop)
    transport, _ = await loop.create_connection(lambda: protocol, *address, ssl=context)
    await reader.readexactly(len(PIECE))
    # As when more arrives than is read.
    while transport.is_reading():
        await asyncio.sleep(0)
    return Client(Connected(asyncio.StreamWriter(transport, protocol, reader, loop), closed))


async def close(address: tuple[str, int]) -> None:
    client = await connect(address)
    correct_connections(client)
    async with asyncio.timeout(LIMIT_S):
        await client.close()


def test_connection_is_let_go_while_data_arrives(flooding: tuple[str, int]) -> None:
    uvloop.run(close(flooding))
