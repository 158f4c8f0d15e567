"""The partition of a key: murmur2, as in the default partitioner of Kafka's Java client."""

_MASK = 0xFFFFFFFF
_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
"""Multiplier and seed of Kafka's `Utils.murmur2`."""


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key among `partitions`."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Compute the 32-bit hash of Kafka's Java client, unsigned."""
    mixed = _SEED ^ len(data)
    whole = len(data) - len(data) % 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        mixed = mixed * _MULTIPLIER & _MASK ^ word
    if whole < len(data):
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    mixed = (mixed ^ mixed >> 13) * _MULTIPLIER & _MASK
    return mixed ^ mixed >> 15
