"""The open shards of all partitions of a process: a bounded number; the least recently used one is closed."""

from collections import OrderedDict
from typing import Protocol

from streams.adapters.vectors.embedded.open_limits import granted_open_shards


class ShardOwner(Protocol):
    """Opens and closes the shards of one directory."""

    def is_idle(self, name: str) -> bool:
        """True if no call on the open shard is under way."""

    def close_idle(self, name: str) -> None:
        """Close an open shard; raises nothing for what a later opening mends."""


class OpenShards:
    """The order in which the open shards of several owners were used."""

    def __init__(self, max_open: int | None = None) -> None:
        """At most `max_open` shards are open at once, or what the system grants."""
        self._max_open = max_open or granted_open_shards()
        self._order: OrderedDict[tuple[ShardOwner, str], None] = OrderedDict()

    def used(self, owner: ShardOwner, name: str) -> None:
        """Note a use of a shard, or its opening."""
        self._order[owner, name] = None
        self._order.move_to_end((owner, name))

    def closed(self, owner: ShardOwner, name: str) -> None:
        """Note that a shard is closed."""
        self._order.pop((owner, name), None)

    def make_room(self) -> None:
        """Close the least recently used shards without a call under way, so that one more can be opened."""
        idle = [(owner, name) for owner, name in self._order if owner.is_idle(name)]
        for owner, name in idle[: max(0, len(self._order) + 1 - self._max_open)]:
            owner.close_idle(name)
