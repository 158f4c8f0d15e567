"""aiokafka as this client uses it: clients outlive lost connections, and close within seconds.

Each corrects only its own instances: other uses of aiokafka in the process stay unchanged.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial, wraps
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError, KafkaError, OutOfOrderSequenceNumber
from aiokafka.structs import RecordMetadata

Write = Callable[..., Any]
"""A method of a connection that writes to it; its first argument is the connection."""

HandOver = Callable[[AIOKafkaProducer], Awaitable[asyncio.Future[RecordMetadata]]]
"""Gives a producer a record; returns the future of its place."""

READ_BACKOFF_S = 0.2
"""Pause after an error of a consumer, so that an outage does not cause a busy loop."""

CLOSE_S = 0.25
"""Seconds for closing connections cleanly. Over TLS, event loops wait 30 s for the other side."""

log = logging.getLogger(__name__)


def write_if_open(write: Write) -> Write:
    """Return the method, raising `KafkaConnectionError` for a closed connection; others raise `OSError`.

    A killed broker resets its connections. For a pass or two of the event loop aiokafka still takes such a connection
    for open. If written to, asyncio drops the bytes, and the request fails once the loss is noticed; uvloop raises
    `RuntimeError`, which would end aiokafka's task. After a `KafkaConnectionError` aiokafka retries the request.
    """

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


async def fetch_until_closed(fetcher: Any, fetch: Callable[[], Awaitable[None]], first: Awaitable[None]) -> None:
    """Wait for the `first` run of a fetcher's task; run `fetch` again after each run that ends with an error.

    An unexpected error ends that task, and aiokafka only logs it: each later poll of its consumer returns nothing, as
    if nothing were left. The next run begins where the consumer is: it skips and repeats nothing.
    """
    run = first
    while True:
        try:
            await run
        except KafkaError as problem:
            log.warning("reading from Kafka ended by %r, it begins again", problem.__cause__ or problem)
            # The new run cancels the others; one that ended by the error would end the new run, too.
            fetcher._pending_tasks = {task for task in fetcher._pending_tasks if not task.done()}  # noqa: SLF001
            await asyncio.sleep(READ_BACKOFF_S)
            run = fetch()
        else:
            return


_send = write_if_open(AIOKafkaConnection.send)


class OwnConsumer(AIOKafkaConsumer):  # type: ignore[misc] # aiokafka has no types
    """A consumer that reads on after any error of a connection. Its methods are aiokafka's."""

    async def start(self) -> None:
        """Connect. Raises KafkaError."""
        correct_connections(self._client)
        await super().start()
        fetcher = self._fetcher
        # The same task, not a copy: it is awaited, and cancelled with the one that waits.
        reading = fetch_until_closed(fetcher, fetcher._fetch_requests_routine, fetcher._fetch_task)  # noqa: SLF001
        fetcher._fetch_task = asyncio.create_task(reading)  # noqa: SLF001

    async def stop(self) -> None:
        """Disconnect, started or not.

        In its own task: after a fetch that has just begun or failed, aiokafka's `stop` ends with a CancelledError,
        which would look like the caller's own.
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
    # An unexpected error would end aiokafka's own loop: it gets one address at a time.
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
    """Return an open, corrected connection; None without one, as aiokafka does."""
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
    """Close all connections; cut those whose other side does not answer."""
    writers = [connection._writer for connection in client._conns.values()]  # noqa: SLF001 (gone once it is closed)
    closing = asyncio.ensure_future(close())
    await asyncio.wait({closing}, timeout=CLOSE_S)
    if not closing.done():
        for writer in writers:
            if writer is not None:
                writer.transport.abort()
    await closing


class RenewedProducer:
    """A producer, replaced when Kafka has lost count of its records.

    An idempotent producer numbers its records. Where Kafka refuses one, as it does if its timestamp is too far ahead,
    aiokafka continues with the next number, and Kafka refuses all later ones of that partition as out of order,
    forever.
    """

    def __init__(self, make: Callable[[], AIOKafkaProducer], stop: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
        """`make` returns a producer that is not started; `stop` ends one within a limited time."""
        self._make = make
        self._stop = stop
        self.current = make()
        self._renewing = asyncio.Lock()
        self._stopping: set[asyncio.Task[None]] = set()

    async def send(self, hand_over: HandOver) -> RecordMetadata:
        """Write a record; retry once if it was refused as out of order. Raises KafkaError.

        Cancellation does not take it back.
        """
        producer = self.current
        try:
            return await asyncio.shield(await hand_over(producer))
        except OutOfOrderSequenceNumber:
            await self._renew(producer)
            return await asyncio.shield(await hand_over(self.current))

    async def stop(self) -> None:
        """Flush, and disconnect."""
        await self._stop(self.current)
        if self._stopping:
            await asyncio.wait(self._stopping)

    async def _renew(self, refused: AIOKafkaProducer) -> None:
        """Start a new one, unless that was done for an earlier record."""
        async with self._renewing:
            if self.current is not refused:
                return
            successor = self._make()
            try:
                await successor.start()
            except BaseException:
                await self._stop(successor)
                raise
            self.current = successor
            ending = asyncio.create_task(self._stop(refused))
            self._stopping.add(ending)
            ending.add_done_callback(self._stopping.discard)
