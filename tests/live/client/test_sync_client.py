"""The Kafka client without `await` on a real broker, with a stand-in for the service."""

import asyncio

import pytest
from modestream_client import MemoryTimeout, SyncMemoryClient

from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.stand_in import StandIn, silent


async def test_it_writes_and_asks_from_a_thread(live_broker: RunningBroker, service: StandIn) -> None:
    def use() -> str | None:
        with SyncMemoryClient(f"kafka://{live_broker.bootstrap}", topic_prefix=service.prefix) as memory:
            return memory.remember("The kettle is blue.", user_id="u1").memory_id

    assert await asyncio.to_thread(use) == "The kettle is blue."


async def test_silence_is_a_timeout(live_broker: RunningBroker, service: StandIn) -> None:
    service.behaviour = silent

    def use() -> None:
        with SyncMemoryClient(live_broker.bootstrap, topic_prefix=service.prefix, timeout=1) as memory:
            memory.retrieve("x", user_id="u1")

    with pytest.raises(MemoryTimeout):
        await asyncio.to_thread(use)
