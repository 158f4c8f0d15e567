import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given
from hypothesis import strategies as some

from streams.wire.partitioning import murmur2, partition_of


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        # From Kafka's own UtilsTest.java.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hash_equals_that_of_the_java_client(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed % 2**32


@given(some.binary(max_size=64))
def test_hash_equals_that_of_aiokafka_for_any_key(key: bytes) -> None:
    assert murmur2(key) == aiokafka_murmur2(key) % 2**32


@given(some.binary(max_size=64), some.integers(1, 1000))
def test_partition_is_in_range(key: bytes, partitions: int) -> None:
    assert 0 <= partition_of(key, partitions) < partitions


def test_highest_bit_of_the_hash_is_cleared_as_in_java() -> None:
    assert partition_of(b"21", 4) == (-973932308 & 0x7FFFFFFF) % 4
    assert partition_of(b"21", 7) == (-973932308 & 0x7FFFFFFF) % 7
