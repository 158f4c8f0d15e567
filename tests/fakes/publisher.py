"""A publisher that records messages, and can hold, refuse or lose them."""

import asyncio
from collections.abc import Awaitable

from schemas.messages.records import Outgoing


class FakePublisher:
    """Implements `streams.flow.publisher.Publisher`. `sent` and `replies` are its inputs, in order.

    While `held` nothing is written: what `send` returned waits until `release`. `broken` is raised by `send`.
    While `lost` every reply is given up.
    """

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []
        self.replies: list[Outgoing] = []
        self.broken: Exception | None = None
        self.lost = False
        self._open = asyncio.Event()
        self._open.set()

    def hold(self) -> None:
        self._open.clear()

    def release(self) -> None:
        """Write held and further messages."""
        self._open.set()

    def to(self, topic: str) -> list[Outgoing]:
        return [out for out in self.sent if out.topic == topic]

    async def send(self, out: Outgoing) -> Awaitable[None]:
        if self.broken is not None:
            raise self.broken
        self.sent.append(out)
        return self._written()

    def flush(self) -> None:
        """Do nothing: records are written at once."""

    async def reply(self, out: Outgoing) -> Awaitable[bool]:
        self.replies.append(out)
        return self._taken()

    async def _written(self) -> None:
        await self._open.wait()

    async def _taken(self) -> bool:
        return not self.lost
