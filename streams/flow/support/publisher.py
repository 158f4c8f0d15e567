"""How records leave: the port that Kafka's adapter and the in-memory one implement."""

from collections.abc import Awaitable
from typing import Protocol

from schemas.records import Outgoing


class Publisher(Protocol):
    """Writes records. Records handed over one after another to one partition are written in that order."""

    async def send(self, out: Outgoing) -> Awaitable[None]:
        """Hand a record over; what is returned is done when the broker has it for good, however long that takes."""

    async def reply(self, out: Outgoing) -> Awaitable[bool]:
        """Hand a reply over; what is returned says within 5 s whether the broker took it. Delays nobody else."""
