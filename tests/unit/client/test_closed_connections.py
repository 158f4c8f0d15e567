"""Writing to a connection that the other side has reset, on uvloop: an error that aiokafka repeats a request after."""

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest
import uvloop
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import KafkaConnectionError
from modestream_client.kafka.own_clients import write_if_open

RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Encoded:
    """A request, as far as a connection asks."""

    def prepare(self, _: object) -> "Encoded":
        """Return itself."""
        return self

    def build_request_header(self, **_: object) -> "Encoded":
        return self

    def encode(self) -> bytes:
        return b"request"


Write = Callable[[AIOKafkaConnection], Any]


def request(connection: AIOKafkaConnection) -> None:
    write_if_open(AIOKafkaConnection.send)(connection, Encoded()).close()


def login(connection: AIOKafkaConnection) -> None:
    """Send a part of a login by SASL, and wait for no response."""
    write_if_open(AIOKafkaConnection._send_sasl_token)(connection, b"token", expect_response=False).close()


@pytest.mark.parametrize("write", [request, login])
def test_writing_to_a_reset_connection_is_a_kafka_error(write: Write) -> None:
    assert isinstance(uvloop.run(write_after_reset(write)), KafkaConnectionError)


async def write_after_reset(write: Write) -> BaseException | None:
    """Write until that raises; return what it raises."""
    accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    server = await asyncio.start_server(lambda _, writer: accepted.put_nowait(writer), "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    connection = AIOKafkaConnection(host, port)
    connection._reader, connection._writer = await asyncio.open_connection(host, port)
    # Nothing reads: the loss is noticed by what is written.
    connection._read_task = asyncio.get_running_loop().create_future()
    theirs = await accepted.get()
    theirs.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    theirs.transport.abort()
    problem = None
    for _ in range(100):
        try:
            write(connection)
        except RuntimeError as raised:
            problem = raised
            break
        await asyncio.sleep(0)
    server.close()
    return problem
