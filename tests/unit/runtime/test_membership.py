"""A worker whose place in the group another one has taken ends before it joins again."""

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import NodeNotReadyError, UnknownMemberIdError
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest

from streams.runtime.membership import FENCED_INSTANCE_ID, InstanceHeartbeatRequest, Membership

UNKNOWN = UnknownMemberIdError.errno
HEARTBEAT, JOIN, SYNC, COMMIT = (
    object.__new__(kind) for kind in (HeartbeatRequest, JoinGroupRequest, SyncGroupRequest, OffsetCommitRequest)
)


class Broker:
    """A group's coordinator that answers with these error codes; `of_instance` is that of the named heartbeat."""

    def __init__(self) -> None:
        self.code, self.of_instance = 0, 0
        self.sent: list[Any] = []
        self.fenced, self.is_away = 0, False
        self.joined: list[str] = []
        self.coordinator = SimpleNamespace(
            group_id="g", generation=3, member_id="w1-a", _group_instance_id="w1", _send_req=self._answer
        )
        self.membership = Membership(self._fence)
        self.membership.on_joined = self.joined.append
        self.membership.watch(SimpleNamespace(_coordinator=self.coordinator))

    async def send(self, request: Any, code: int, of_instance: int = 0) -> Any:
        self.code, self.of_instance = code, of_instance
        return await self.coordinator._send_req(request)

    async def _answer(self, request: Any) -> Any:
        self.sent.append(request)
        if isinstance(request, InstanceHeartbeatRequest):
            if self.is_away:
                raise NodeNotReadyError
            return SimpleNamespace(error_code=self.of_instance)
        if isinstance(request, OffsetCommitRequest):
            return SimpleNamespace(topics=[("turns", [(0, 0), (1, self.code)])])
        return SimpleNamespace(error_code=self.code, member_id="w1-b")

    def _fence(self) -> None:
        self.fenced += 1


@pytest.fixture
async def broker() -> Broker:
    return Broker()


@pytest.mark.parametrize("request_", [HEARTBEAT, COMMIT])
async def test_unknown_member_asks_and_ends_when_another_has_its_place(broker: Broker, request_: Any) -> None:
    await broker.send(request_, UNKNOWN, FENCED_INSTANCE_ID)
    assert broker.fenced == 1
    asked = broker.sent[-1].prepare({12: (0, 4)})
    assert asked.group == "g"
    assert asked.generation_id == 3
    assert asked.member_id == "w1-a"
    assert asked.group_instance_id == "w1"


@pytest.mark.parametrize("request_", [HEARTBEAT, COMMIT])
async def test_member_whose_session_ran_out_joins_again(broker: Broker, request_: Any) -> None:
    response = await broker.send(request_, UNKNOWN, UNKNOWN)
    assert broker.fenced == 0
    assert response is not None


@pytest.mark.parametrize("request_", [JOIN, SYNC])
async def test_fenced_join_ends(broker: Broker, request_: Any) -> None:
    await broker.send(request_, FENCED_INSTANCE_ID)
    assert broker.fenced == 1
    assert broker.joined == []


async def test_member_without_an_id_is_not_asked_about(broker: Broker) -> None:
    broker.coordinator.member_id = JoinGroupRequest.UNKNOWN_MEMBER_ID
    await broker.send(JOIN, UNKNOWN, FENCED_INSTANCE_ID)
    assert broker.sent == [JOIN]
    assert broker.fenced == 0


async def test_each_join_is_told(broker: Broker) -> None:
    await broker.send(JOIN, 0)
    await broker.send(HEARTBEAT, 0)
    assert broker.joined == ["w1-b"]
    assert broker.sent == [JOIN, HEARTBEAT]


async def test_place_is_confirmed_before_events_flow(broker: Broker) -> None:
    await broker.membership.confirm()
    assert broker.fenced == 0
    broker.of_instance = FENCED_INSTANCE_ID
    await broker.membership.confirm()
    assert broker.fenced == 1


async def test_broker_that_is_away_confirms_nothing_and_ends_nothing(broker: Broker) -> None:
    broker.of_instance, broker.is_away = FENCED_INSTANCE_ID, True
    await broker.membership.confirm()
    assert broker.fenced == 0


async def test_in_memory_there_is_no_place() -> None:
    await Membership().confirm()
