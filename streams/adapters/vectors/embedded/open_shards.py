"""The open shards of a process: how many the system grants, which one is closed for another."""

import resource
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

MAX_OPEN_SHARDS = 32
"""Open shards: 224 descriptors, 2,700 memory maps and 32 threads. Opening a closed one takes 40 ms, closing 12."""

MIN_OPEN_SHARDS = 2

SHARD_DESCRIPTORS = 16
"""Descriptors of a shard: 7 are measured, more while segments are written."""

SHARD_MAPS = 256
"""Memory maps of a shard: 83 are measured with one segment."""

MAX_MAP_COUNT_FILE = Path("/proc/sys/vm/max_map_count")


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def max_open_shards(descriptors: int, maps: int) -> int:
    """Return the bound for these limits; half of each is left to the rest of the process. -1 is no limit."""
    by_limits = [
        limit // 2 // each for limit, each in ((descriptors, SHARD_DESCRIPTORS), (maps, SHARD_MAPS)) if limit > 0
    ]
    return max(MIN_OPEN_SHARDS, min(MAX_OPEN_SHARDS, *by_limits))


def granted_open_shards() -> int:
    """Return the bound for this process, after raising its limit of open files."""
    maps = int(MAX_MAP_COUNT_FILE.read_text()) if MAX_MAP_COUNT_FILE.exists() else -1
    return max_open_shards(raise_descriptor_limit(), maps)


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
