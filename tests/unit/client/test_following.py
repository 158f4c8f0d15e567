"""A client over Kafka follows a switch: at its start, while it runs, back after a withdrawn one; nothing in between."""

import asyncio
import time

import pytest
from aiokafka import ConsumerRecord
from modestream_client.failures import MemoryClosed, MemoryTimeout, MemoryUnreachable
from modestream_client.kafka.following import FollowingTransport
from modestream_client.kafka.successor import DeploymentAddress, SuccessorNotice, address_of
from modestream_client.successor import Successor

from tests.fakes.deployments import FakeDeployments


async def ask(client: FollowingTransport, timeout: float | None = None) -> None:
    await client.request("retrieve", {"scope": {"user_id": "u1"}}, principal=None, timeout=timeout, deadline=True)


async def test_client_sends_to_the_deployment_that_serves_after_several_switches() -> None:
    deployments = FakeDeployments()
    deployments.tell("one.", "serving", "two.")
    deployments.tell("two.", "dropped", "three.")
    client = deployments.client()
    await client.open()
    await ask(client)
    await client.close()
    assert (deployments.sent, deployments.closed) == (["three."], ["three."])


async def test_running_client_waits_for_the_end_of_a_switch_and_goes_on_there() -> None:
    deployments = FakeDeployments()
    client = deployments.client()
    await client.open()
    await ask(client)
    deployments.tell("one.", "pausing", "two.")
    await asyncio.sleep(0.01)
    asking = asyncio.create_task(ask(client))
    await asyncio.sleep(0.01)
    assert deployments.sent == ["one."], "nothing is sent while the rest is copied"
    deployments.tell("one.", "serving", "two.")
    await asking
    deployments.tell("two.", "serving", "three.")
    await asyncio.sleep(0.01)
    await ask(client)
    await client.close()
    assert deployments.sent == ["one.", "two.", "three."]
    assert sorted(deployments.closed) == ["one.", "three.", "two."]


@pytest.mark.parametrize("ends_by", ["withdrawn", "itself"])
async def test_pause_without_a_switch_ends_with_the_former_deployment(ends_by: str) -> None:
    deployments = FakeDeployments()
    client = deployments.client()
    await client.open()
    deployments.tell("one.", "pausing", "two.", pause_s=60 if ends_by == "withdrawn" else 0.05)
    await asyncio.sleep(0.01)
    asking = asyncio.create_task(ask(client))
    await asyncio.sleep(0.01)
    assert deployments.sent == []
    if ends_by == "withdrawn":
        deployments.tell("one.", "withdrawn", "two.")
    await asking
    assert deployments.sent == ["one."]
    await client.close()


async def open_in_a_pause() -> tuple[FakeDeployments, FollowingTransport]:
    deployments = FakeDeployments()
    deployments.tell("one.", "pausing", "two.")
    client = deployments.client()
    await client.open()
    await asyncio.sleep(0.01)
    return deployments, client


async def test_call_that_the_pause_outlasts_ends_with_its_timeout_and_has_sent_nothing() -> None:
    deployments, client = await open_in_a_pause()
    with pytest.raises(MemoryTimeout, match="nothing was sent") as late:
        await ask(client, timeout=0.02)
    assert (late.value.is_written, deployments.sent) == (False, [])
    await client.close()
    with pytest.raises(MemoryClosed):
        await ask(client)


async def test_close_during_a_pause_sends_nothing_more() -> None:
    deployments, client = await open_in_a_pause()
    asking = asyncio.create_task(ask(client))
    await asyncio.sleep(0.01)
    await client.close()
    with pytest.raises(MemoryClosed):
        await asking
    assert (deployments.sent, deployments.closed) == ([], ["one."])


async def test_watch_that_ends_during_a_pause_does_not_end_the_pause() -> None:
    deployments = FakeDeployments()
    client = deployments.client()
    await client.open()
    deployments.tell("one.", "pausing", "two.", pause_s=0.1)
    await asyncio.sleep(0.01)
    deployments.unwatched.add("one.")
    deployments.changed.set()
    asking = asyncio.create_task(ask(client))
    await asyncio.sleep(0.03)
    assert deployments.sent == []
    await asking
    assert deployments.sent == ["one."]
    await client.close()


@pytest.mark.parametrize("problem", ["cycle", "malformed address"])
async def test_switch_that_cannot_be_followed_fails_calls_and_sends_nothing(problem: str) -> None:
    deployments = FakeDeployments()
    client = deployments.client()
    await client.open()
    if problem == "cycle":
        deployments.tell("two.", "serving", "one.")
    else:
        deployments.malformed.add("two.")
    deployments.tell("one.", "serving", "two.")
    await asyncio.sleep(0.01)
    with pytest.raises(MemoryUnreachable, match="can't follow the switch of one"):
        await ask(client)
    await client.close()
    assert (deployments.sent, deployments.watching) == ([], [])


async def test_request_under_way_at_a_switch_is_answered_by_the_former_deployment() -> None:
    deployments = FakeDeployments()
    deployments.busy.add("one.")
    client = deployments.client()
    await client.open()
    asking = asyncio.create_task(ask(client))
    await asyncio.sleep(0)
    deployments.tell("one.", "serving", "two.")
    await asyncio.sleep(0.01)
    await ask(client)
    assert deployments.closed == [], "a request waits there"
    deployments.answer.set()
    await asking
    await asyncio.sleep(0.01)
    assert (deployments.sent, deployments.closed) == (["one.", "two."], ["one."])
    await client.close()


async def test_former_deployment_without_requests_is_disconnected_at_once() -> None:
    deployments = FakeDeployments()
    client = deployments.client()
    await client.open()
    deployments.tell("one.", "serving", "two.")
    await asyncio.sleep(0.01)
    assert deployments.closed == ["one."]
    await client.close()


async def test_close_during_a_move_leaves_nothing_open() -> None:
    deployments = FakeDeployments()
    deployments.hanging.add("two.")
    client = deployments.client()
    await client.open()
    deployments.tell("one.", "serving", "two.")
    await asyncio.sleep(0.01)
    await client.close()
    assert (sorted(deployments.closed), deployments.watching) == (["one.", "two."], [])


def record(value: bytes, age_s: float = 0.0, key: bytes = b"successor") -> ConsumerRecord[bytes, bytes]:
    at_ms = round((time.time() - age_s) * 1000)
    return ConsumerRecord("memory.service", 0, 0, at_ms, 0, key, value, None, len(key), len(value), ())


def test_pause_is_counted_from_its_record_and_other_records_say_nothing() -> None:
    pausing = b'{"schema":"successor.v1","state":"pausing","topic_prefix":"two.","broker":null}'
    now, old = SuccessorNotice.of(record(pausing)), SuccessorNotice.of(record(pausing, age_s=3600))
    assert now is not None
    assert old is not None
    assert 50 < now.pauses_until - time.monotonic() <= 60
    assert old.pauses_until < time.monotonic()
    new = SuccessorNotice.of(record(pausing, age_s=3600), is_new=True)
    assert new is not None
    assert 50 < new.pauses_until - time.monotonic() <= 60, "it has just come, whatever the own clock says"
    for value, key in ((b"{}", b"successor"), (b'{"state":"gone"}', b"successor"), (pausing, b"service")):
        assert SuccessorNotice.of(record(value, key=key)) is None


def test_successor_on_another_broker_has_the_address_of_a_client() -> None:
    former = DeploymentAddress("here:9092", "one.")
    assert address_of(Successor(state="serving", topic_prefix="two."), former) == DeploymentAddress("here:9092", "two.")
    other = Successor(state="serving", topic_prefix="two.", broker="kafka://a:1;b:2")
    assert address_of(other, former) == DeploymentAddress("a:1,b:2", "two.")
