"""Events that this process has written and will read again, as objects: reading them back costs no decoding.

Enters: the bytes of a written record with their event. Leaves: the event, for a record with these very bytes.
Guaranteed: what is not kept is decoded as any other record; bounded in events and bytes. Belongs to one event loop.
"""

from collections.abc import Mapping
from time import monotonic
from typing import Any

MAX_EVENTS = 2048
"""Events that are kept. Readers that are further behind decode what they read."""

MAX_BYTES = 4 * 1024 * 1024
"""Serialised bytes of all kept events; parsed, they take some seven times as much."""

MAX_AGE_S = 60.0
"""Seconds after which events that nothing has read are dropped: their partition is another worker's now."""

APPLIED = object()
"""Kept in place of an event that was applied when it was written."""


class RecentEvents:
    """Events by their bytes, each until its last reader has it."""

    def __init__(self, readers: Mapping[type[Any], int] | None = None) -> None:
        """`readers` has the number of readers of kinds of events with more than one."""
        self._readers = readers or {}
        self._kept: dict[bytes, tuple[Any, int]] = {}
        self._bytes = 0
        self._since = monotonic()
        """When the oldest event was kept, or a later time: that of the last one that was read."""

    def keep(self, value: bytes, event: Any) -> None:
        """Keep an event until it is read. A full store keeps what it has: that is read first."""
        if len(self._kept) >= MAX_EVENTS or self._bytes >= MAX_BYTES:
            if monotonic() - self._since < MAX_AGE_S:
                return
            self._kept.clear()
            self._bytes = 0
        if not self._kept:
            self._since = monotonic()
        if value not in self._kept:
            self._bytes += len(value)
        self._kept[value] = event, self._readers.get(type(event), 1)

    def take(self, value: bytes | None) -> Any:
        """Return the event with these bytes, or `APPLIED`; None if it is not kept."""
        if value is None or (found := self._kept.get(value)) is None:
            return None
        event, readers = found
        if readers > 1:
            self._kept[value] = event, readers - 1
        else:
            del self._kept[value]
            self._bytes -= len(value)
        self._since = monotonic()
        return event
