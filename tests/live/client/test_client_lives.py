"""The client's start, close, and behaviour during a broker outage."""

import asyncio
import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
from modestream_client import MemoryClient, MemoryClosed, MemoryServiceError, MemoryTimeout, MemoryUnreachable

from streams.up.layout import free_port
from tests.worlds.live.broker import RunningBroker, running_broker
from tests.worlds.live.stand_in import SOON, StandIn, connected, silent, standing_in


async def test_closing_fails_the_calls_that_wait(live_broker: RunningBroker, service: StandIn) -> None:
    service.behaviour = silent
    async with connected(live_broker, service) as client:
        waiting = asyncio.create_task(client.remember("x"))
        await service.next("turns")
    with pytest.raises(MemoryClosed):
        await waiting
    with pytest.raises(MemoryClosed):
        await client.retrieve("x")


async def test_client_can_be_opened_again(live_broker: RunningBroker, service: StandIn) -> None:
    client = MemoryClient(live_broker.bootstrap, user_id="u1", topic_prefix=service.prefix)
    for content in ("once", "again"):
        async with client as memory:
            assert (await memory.remember(content)).memory_id == content


async def test_without_the_services_topics_opening_fails(live_broker: RunningBroker) -> None:
    with pytest.raises(MemoryUnreachable, match=r"no deployment with the prefix 'nobody\.'"):
        async with MemoryClient(live_broker.bootstrap, topic_prefix="nobody."):
            pass


async def test_oversized_record_is_rejected_at_once(memory: MemoryClient) -> None:
    with pytest.raises(MemoryServiceError, match="too_large"):
        await memory.remember("x" * (9 << 20))


async def test_client_survives_a_broker_restart_and_closes_during_an_outage(tmp_path: Path, prefix: str) -> None:
    port = free_port()
    with ExitStack() as brokers:
        broker = brokers.enter_context(running_broker(tmp_path, port))
        async with standing_in(broker.bootstrap, prefix) as service, connected(broker, service) as memory:
            await memory.remember("before")
            os.kill(broker.pid, signal.SIGKILL)
            with pytest.raises(MemoryTimeout):
                await memory.remember("during", timeout=SOON)
            again = brokers.enter_context(running_broker(tmp_path, port))
            assert (await memory.remember("after", timeout=30)).memory_id == "after"
            contents = [(await service.next("turns")).value["content"] for _ in range(3)]
            assert contents == ["before", "during", "after"]
            leaving = await MemoryClient(broker.bootstrap, user_id="u1", topic_prefix=prefix).__aenter__()
            await leaving.remember("before it leaves")
            await service.next("turns")
        os.kill(again.pid, signal.SIGKILL)
        with pytest.raises(MemoryTimeout):
            await leaving.remember("never", timeout=1)
        async with asyncio.timeout(20):
            await leaving.__aexit__(None, None, None)
