"""Consumers and producers of aiokafka that outlive lost connections and close within seconds, TLS or not.

Each corrects its own instances: whatever else the process does with aiokafka stays as it is.
"""

import asyncio
import random
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import KafkaConnectionError, KafkaError

from modestream_client.kafka.closed_connections import write_if_open
from modestream_client.kafka.ended_fetches import fetch_until_closed

CLOSE_S = 0.25
"""Seconds for the goodbyes of connections. Over TLS, event loops wait 30 s for the other side's."""

_send = write_if_open(AIOKafkaConnection.send)


class OwnConsumer(AIOKafkaConsumer):  # type: ignore[misc] # aiokafka has no types
    """A consumer that reads on after any error of a connection. Its methods are aiokafka's."""

    async def start(self) -> None:
        """Connect. Raises KafkaError."""
        correct_connections(self._client)
        await super().start()
        fetcher = self._fetcher
        # No copy of the task: it is waited for, and cancelled with the one that waits.
        reading = fetch_until_closed(fetcher, fetcher._fetch_requests_routine, fetcher._fetch_task)  # noqa: SLF001
        fetcher._fetch_task = asyncio.create_task(reading)  # noqa: SLF001

    async def stop(self) -> None:
        """Disconnect, started or not.

        In a task of its own: after a fetch that has just begun or failed, aiokafka's `stop` ends with a CancelledError,
        which would stand for the caller's own.
        """
        stopping = asyncio.create_task(super().stop())
        await asyncio.wait({stopping})
        if not stopping.cancelled():
            stopping.result()


class OwnProducer(AIOKafkaProducer):  # type: ignore[misc] # aiokafka has no types
    """A producer that sends on after any error of a connection. Its methods are aiokafka's."""

    async def start(self) -> None:
        """Connect. Raises KafkaError."""
        correct_connections(self.client)
        await super().start()


def correct_connections(client: Any) -> None:
    """Correct the connections of one client of aiokafka, from now on."""
    client.bootstrap = partial(_bootstrap, client, client.bootstrap)
    client._get_conn = partial(_connection_of, client, client._get_conn)  # noqa: SLF001 (it opens all that last)
    client.close = partial(_close, client, client.close)


async def _bootstrap(client: Any, bootstrap: Any) -> None:
    """Connect to the first address that answers, one after the other in any order. Raises KafkaConnectionError."""
    # An error that aiokafka does not expect would end its own loop: it gets one address at a time.
    every = client._bootstrap_servers  # noqa: SLF001
    addresses = every.split(",") if isinstance(every, str) else [*every]
    random.shuffle(addresses)
    problem: Exception | None = None
    try:
        for address in addresses:
            client._bootstrap_servers = [address.strip()]  # noqa: SLF001
            try:
                await bootstrap()
            except KafkaConnectionError as unreachable:
                problem = unreachable
            except KafkaError:
                raise
            except RuntimeError as closed:
                problem = closed
            else:
                return
    finally:
        client._bootstrap_servers = every  # noqa: SLF001
    raise KafkaConnectionError(f"no address of {every} answers: {problem}") from problem


async def _connection_of(client: Any, get: Any, *node: Any, **how: Any) -> Any:
    """Return an open connection, corrected; None where there is none, as aiokafka does."""
    try:
        connection = await get(*node, **how)
    except KafkaError:
        raise
    except RuntimeError:
        # It was closed in the middle of its login.
        client.force_metadata_update()
        return None
    if connection is not None and "send" not in vars(connection):
        connection.send = partial(_send, connection)
    return connection


async def _close(client: Any, close: Any) -> None:
    """Close all connections; cut those whose other side does not say goodbye."""
    writers = [connection._writer for connection in client._conns.values()]  # noqa: SLF001 (gone once it is closed)
    closing = asyncio.ensure_future(close())
    await asyncio.wait({closing}, timeout=CLOSE_S)
    if not closing.done():
        for writer in writers:
            if writer is not None:
                writer.transport.abort()
    await closing
