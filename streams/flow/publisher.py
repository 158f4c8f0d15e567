"""The producer port: implemented by the Kafka adapter and by the tests' in-memory one. And waiting for its writes."""

from collections.abc import Awaitable, Sequence
from typing import Protocol

from schemas.messages.records import Outgoing


class Publisher(Protocol):
    """Writes records. Records handed over one after another to one partition are written in that order."""

    async def send(self, out: Outgoing) -> Awaitable[None]:
        """Hand a record over; the returned awaitable is done when the broker has stored it, however long that takes."""

    def flush(self) -> None:
        """Have the records that were handed over written at once."""

    async def reply(self, out: Outgoing) -> Awaitable[bool]:
        """Hand a reply over; the awaitable is done when the request need not wait for it any longer.

        True if the broker has the reply. False if its topic is missing or slow: then it is attempted beside for 5 s, or
        given up.
        """


async def await_all(awaitables: Sequence[Awaitable[object]]) -> None:
    """Wait for each in turn: all of them run already."""
    for awaitable in awaitables:
        await awaitable


async def no_writes() -> None:
    """Do nothing: there is nothing to await."""
