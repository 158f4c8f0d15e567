"""A request on a connection that was closed a moment ago, as uvloop tells it.

A broker that is killed resets its connections. For a pass or two of the event loop aiokafka still takes such a
connection for open. Written to it, asyncio drops the bytes, and the request fails once the loss is noticed; uvloop
raises `RuntimeError`. That ends aiokafka's task that fetches, or the one that sends, without a word: the consumer reads
nothing for good. Here it is the error that aiokafka repeats a request after.
"""

from typing import Any

from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError, KafkaError

_send = AIOKafkaConnection.send


def patch_closed_connections() -> None:
    """Patch aiokafka for every connection of this process; it knows no error of a loop but `OSError`."""
    AIOKafkaConnection.send = _send_if_open


def _send_if_open(connection: Any, request: Any, expect_response: bool = True) -> Any:  # noqa: FBT002 - as aiokafka calls it
    try:
        return _send(connection, request, expect_response)
    except KafkaError:
        raise
    except RuntimeError as closed:
        connection.close(reason=CloseReason.CONNECTION_BROKEN)
        raise KafkaConnectionError(f"the connection was closed: {closed}") from closed
