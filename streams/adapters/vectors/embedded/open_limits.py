"""How many shards may be open at once: by the descriptors and memory maps that the system grants this process."""

import resource
from pathlib import Path

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
