"""Checks of the client before it sends anything, and its record keys and partitions."""

from datetime import UTC, datetime

import pytest
from aiokafka.partitioner import DefaultPartitioner, murmur2
from modestream_client import MemoryClient, MemoryClosed, MemoryUnreachable
from modestream_client.boundary import boundary_key

CLOSED_PORT = "127.0.0.1:1"
"""An address where no broker listens."""


@pytest.mark.parametrize(
    ("text", "java"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_producer_hashes_keys_like_java(text: str, java: int) -> None:
    """The expected values are from Apache Kafka's UtilsTest."""
    assert murmur2(text.encode()) == java & 0xFFFFFFFF
    assert DefaultPartitioner()(text.encode(), [0, 1, 2, 3], [2]) == (java & 0x7FFFFFFF) % 4


@pytest.mark.parametrize(("user", "key"), [("u1", "u1"), ("a/b", "a%2Fb"), ("50%", "50%25"), ("naïve é", "naïve é")])
def test_key_is_the_canonical_boundary(user: str, key: str) -> None:
    assert boundary_key([user]) == key


async def test_call_outside_of_its_block_raises() -> None:
    memory = MemoryClient(CLOSED_PORT, user_id="u1")
    with pytest.raises(MemoryClosed, match="async with"):
        await memory.remember("x")
    with pytest.raises(MemoryClosed):
        await memory.remember("x", wait=False)
    with pytest.raises(MemoryClosed):
        await memory.retrieve("x")
    with pytest.raises(MemoryClosed):
        await memory.assemble("x")
    with pytest.raises(MemoryClosed):
        await memory.command("health")


async def test_open_without_a_broker_says_what_to_check() -> None:
    with pytest.raises(MemoryUnreachable, match=r"127\.0\.0\.1:1.*is the service up"):
        async with MemoryClient(CLOSED_PORT, user_id="u1", timeout=5):
            pass


async def test_a_question_takes_one_user_or_several() -> None:
    with pytest.raises(ValueError, match="either"):
        await MemoryClient(CLOSED_PORT).retrieve("x", user_id="u1", users=["u2"])


async def test_call_without_a_user_raises() -> None:
    memory = MemoryClient(CLOSED_PORT)
    with pytest.raises(ValueError, match="user_id"):
        await memory.remember("x")
    with pytest.raises(ValueError, match="user_id"):
        await memory.retrieve("x", users=[])


async def test_a_time_without_a_zone_is_refused() -> None:
    memory = MemoryClient(CLOSED_PORT, user_id="u1")
    with pytest.raises(ValueError, match="time zone"):
        await memory.remember("x", occurred_at=datetime(2026, 3, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="time zone"):
        await memory.retrieve("x", since=datetime(2026, 3, 1, tzinfo=UTC).replace(tzinfo=None))


async def test_read_after_offset_is_rejected_for_several_users() -> None:
    with pytest.raises(ValueError, match="one user"):
        await MemoryClient(CLOSED_PORT).retrieve("x", users=["a", "b"], read_after=7)
