"""The fence: nothing is written while the group may have gone on without this worker."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.protocol.group import JoinGroupRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.produce import ProduceRequest

from streams.runtime.fence import MAX_SILENCE_S, GroupFence

PRODUCE = object.__new__(ProduceRequest)
METADATA = object.__new__(MetadataRequest)


class Group:
    """A worker's side of its group: a clock, heartbeats with these results, and what is sent."""

    def __init__(self) -> None:
        self.now, self.is_known, self.pause = 100.0, True, 0.0
        self.sent: list[Any] = []
        self.expelled = 0
        self.fence = GroupFence(lambda: self.now, self._expel)
        self.coordinator = SimpleNamespace(member_id="m1", _do_heartbeat=self._answer, _on_join_complete=self._assigned)
        self.fence.watch(SimpleNamespace(_coordinator=self.coordinator))
        self.client = SimpleNamespace(send=self._send)
        self.fence.guard(SimpleNamespace(client=self.client))

    async def heartbeat(self, *, is_known: bool = True, pause: float = 0.0) -> None:
        """Send a heartbeat; its response is read after `pause` seconds."""
        self.is_known, self.pause = is_known, pause
        await self.coordinator._do_heartbeat()

    async def is_sent(self, request: Any) -> bool:
        """True if the request is sent now."""
        sending = asyncio.create_task(self.client.send(0, request))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sending.cancel()
        return request in self.sent

    async def _answer(self) -> bool:
        self.now += self.pause
        if not self.is_known:
            self.coordinator.member_id = JoinGroupRequest.UNKNOWN_MEMBER_ID
        return self.is_known

    async def _assigned(self, *assignment: object) -> None:
        self.assigned = assignment

    async def _send(self, _node: int, request: Any) -> None:
        self.sent.append(request)

    def _expel(self) -> None:
        self.expelled += 1


@pytest.fixture
def group() -> Group:
    return Group()


async def test_join_counts_as_a_heartbeat(group: Group) -> None:
    await group.coordinator._on_join_complete(1, "m1")
    assert group.assigned == (1, "m1")
    group.now += MAX_SILENCE_S + 1
    assert not await group.is_sent(PRODUCE)


async def test_before_the_first_heartbeat_everything_is_sent(group: Group) -> None:
    assert await group.is_sent(PRODUCE)


async def test_after_a_long_silence_records_wait_and_other_requests_do_not(group: Group) -> None:
    await group.heartbeat()
    group.now += MAX_SILENCE_S + 1
    assert not await group.is_sent(PRODUCE)
    assert await group.is_sent(METADATA)
    await group.heartbeat()
    assert await group.is_sent(PRODUCE)


async def test_response_that_is_read_late_does_not_open_the_fence(group: Group) -> None:
    await group.heartbeat(pause=MAX_SILENCE_S + 1)
    assert not await group.is_sent(PRODUCE)


async def test_paused_worker_that_the_group_does_not_know_any_more_ends(group: Group) -> None:
    await group.heartbeat()
    group.now += MAX_SILENCE_S + 1
    await group.heartbeat(is_known=False)
    assert group.expelled == 1


async def test_worker_that_rejoins_in_time_goes_on(group: Group) -> None:
    await group.heartbeat()
    group.now += 1
    await group.heartbeat(is_known=False)
    assert group.expelled == 0
    assert await group.is_sent(PRODUCE)
