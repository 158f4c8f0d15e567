"""Faust events that only this project acknowledges.

Faust acknowledges an event when the loop moves on, when the agent raises, and when it skips an event that was read
before a rebalance. Each time unfinished work would be lost. Here `ack` does nothing; `settle` acknowledges.
"""

from collections.abc import Iterable
from typing import cast

import faust

from schemas.records import Record


class HeldEvent(faust.Event):
    """An event that is acknowledged by `settle` alone."""

    @property
    def record(self) -> Record:
        """What was read, as bytes."""
        message = self.message
        return Record(
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            timestamp_ms=round((message.timestamp or 0) * 1000),
            key=message.key,
            value=message.value,
            headers=tuple(cast(Iterable[tuple[str, bytes | None]], message.headers or ())),
        )

    def ack(self) -> bool:
        """Do nothing: Faust calls this too early."""
        return False

    def settle(self) -> None:
        """Acknowledge: the effects of this event and of all before it are durable."""
        super().ack()
