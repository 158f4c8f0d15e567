"""Writing to a connection that was closed a moment ago, as uvloop tells it.

A broker that is killed resets its connections. For a pass or two of the event loop aiokafka still takes such a
connection for open. Written to it, asyncio drops the bytes, and the request fails once the loss is noticed; uvloop
raises `RuntimeError`, which aiokafka does not expect: its task that fetches, or the one that sends, would end. Here it
is the error that aiokafka repeats a request after.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from aiokafka.conn import CloseReason
from aiokafka.errors import KafkaConnectionError, KafkaError

Write = Callable[..., Any]
"""A method of a connection that writes to it; its first argument is the connection."""


def write_if_open(write: Write) -> Write:
    """Return the method, raising `KafkaConnectionError` for a connection that was closed; others raise `OSError`."""

    @wraps(write)
    def write_or_fail(connection: Any, *what: Any, **how: Any) -> Any:
        try:
            return write(connection, *what, **how)
        except KafkaError:
            raise
        except RuntimeError as closed:
            connection.close(reason=CloseReason.CONNECTION_BROKEN)
            raise KafkaConnectionError(f"the connection was closed: {closed}") from closed

    return write_or_fail
