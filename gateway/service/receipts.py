"""The receipts of forgetting, in memory, from their topic: the latest of each.

Guaranteed: bounded; without names and texts, as the topic has them.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from pydantic_core import from_json

from gateway.service.calls import Json, Refused
from gateway.service.events import already_begun
from schemas.messages.records import Record

TOPIC = "receipts"

MAX_RECEIPTS = 50_000
"""Receipts in memory, the latest ones: 35 MB."""

ARRIVAL_S = 1.0
"""Seconds that a receipt may take from its command's answer until it is read here."""


class Receipts:
    """Receipts by id, for any caller: they name no user and no text."""

    def __init__(self, begin: Callable[[], Awaitable[None]] = already_begun) -> None:
        """`begin` starts the follower of the topic, and returns once it has read what was there."""
        self._begin = begin
        self._receipts: OrderedDict[bytes, bytes] = OrderedDict()
        self._arrived = asyncio.Event()

    def take(self, records: Sequence[Record]) -> None:
        """Take records of the topic."""
        for record in records:
            if record.key is not None and record.value is not None:
                self._receipts[record.key] = record.value
                self._receipts.move_to_end(record.key)
        while len(self._receipts) > MAX_RECEIPTS:
            self._receipts.popitem(last=False)
        self._arrived.set()

    async def get(self, receipt_id: str) -> Json:
        """Return the latest of a receipt. Raises Refused."""
        await self._begin()
        key = receipt_id.encode("utf-8", "replace")
        try:
            async with asyncio.timeout(ARRIVAL_S):
                while key not in self._receipts:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            raise Refused("not_found", "there is no receipt of this id", names_resource=True) from None
        shown: Json = from_json(self._receipts[key])
        return shown
