"""The client on a real broker, against a stand-in for the service that can be silent, late, wrong or talk twice."""

import asyncio
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiokafka.partitioner import DefaultPartitioner

from streams.client import MemoryClient, MemoryClosed, MemoryServiceError, MemoryTimeout, MemoryUnreachable
from streams.up.ports import free_port
from tests.live.broker import RunningBroker, running_broker
from tests.live.stand_in import PARTITIONS, Json, Seen, StandIn, by_contract, error, ok, silent, standing_in

SOON = 0.3
"""Seconds until a call gives up that nobody will answer."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with running_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def prefix() -> str:
    return f"test-{secrets.token_hex(4)}."


@pytest.fixture
async def service(broker: RunningBroker, prefix: str) -> AsyncIterator[StandIn]:
    async with standing_in(broker.bootstrap, prefix) as running:
        yield running


@pytest.fixture
async def memory(broker: RunningBroker, service: StandIn) -> AsyncIterator[MemoryClient]:
    async with connect(broker, service) as client:
        yield client


@asynccontextmanager
async def connect(broker: RunningBroker, service: StandIn, **how: Any) -> AsyncIterator[MemoryClient]:
    async with MemoryClient(broker.bootstrap, **{"user_id": "u1", "topic_prefix": service.prefix, **how}) as client:
        yield client


def partition_of(key: str) -> int:
    partition: int = DefaultPartitioner()(key.encode(), list(range(PARTITIONS)), [])
    return partition


def finds(*users: str) -> Json:
    """A reply with one hit for each of these users."""
    hits: list[Json] = [
        {
            "memory_id": f"m-{user}",
            "turn_id": "t",
            "conversation_id": "c",
            "scope": {"user_id": user, "project_id": "default"},
            "type": "episodic",
            "mode": "general",
            "mode_source": "fallback",
            "role": "user",
            "speaker": None,
            "text": "text",
            "occurred_at": "2026-03-01T09:30:00Z",
            "score": 0.5,
            "evidence": [],
            "version": 1,
            "embedding_status": "ready",
        }
        for user in users
    ]
    return ok({"hits": hits, "modes": ["general"], "strategy": "hybrid", "diagnostics": {"took_ms": 1}})


async def test_a_turn_is_written_by_the_contract_and_its_reply_is_typed(memory: MemoryClient, service: StandIn) -> None:
    remembered = await memory.remember(
        "The deploy target is fly.io now.",
        speaker="Ana",
        occurred_at=datetime(2026, 3, 1, 9, 30, tzinfo=UTC),
        turn_id="t-17",
        resources=[{"uri": "s3://a.png", "text": "a caption"}],
    )
    seen = await service.next("turns")
    assert seen.value["schema"] == "turn.v1"
    assert seen.value["scope"] == {"user_id": "u1", "project_id": "default"}
    assert (seen.value["role"], seen.value["conversation_id"]) == ("user", "default")
    assert seen.value["occurred_at"] == "2026-03-01T09:30:00+00:00"
    assert seen.value["resources"] == [{"uri": "s3://a.png", "text": "a caption"}]
    assert (remembered.memory_id, remembered.turn_id) == ("The deploy target is fly.io now.", "t-17")
    assert (remembered.partition, remembered.offset) == (seen.partition, seen.offset)
    assert remembered.duplicate is False


@pytest.mark.parametrize(("user", "key"), [("u1", "u1"), ("a/b%", "a%2Fb%25"), ("zoë", "zoë"), ("other", "other")])
async def test_every_record_has_the_canonical_key_and_lies_in_its_partition(
    memory: MemoryClient, service: StandIn, user: str, key: str
) -> None:
    await memory.remember("x", user_id=user)
    await memory.retrieve("x", users=user)
    await memory.command("health", user_id=user)
    for topic in ("turns", "retrieve", "commands"):
        seen = await service.next(topic)
        assert (seen.key, seen.partition) == (key.encode(), partition_of(key))


async def test_requests_carry_a_deadline_and_turns_do_not(memory: MemoryClient, service: StandIn) -> None:
    before = time.time()
    await memory.remember("x", timeout=60)
    await memory.retrieve("x", timeout=60)
    assert "deadline" not in (await service.next("turns")).headers
    deadline = int((await service.next("retrieve")).headers["deadline"]) / 1000
    assert before + 59 < deadline <= time.time() + 60


async def test_concurrent_calls_get_their_own_replies_in_whatever_order_these_come(
    memory: MemoryClient, service: StandIn
) -> None:
    service.behaviour = silent
    calls = [asyncio.create_task(memory.remember(f"content {number}")) for number in range(20)]
    seen = [await service.next("turns") for _ in calls]
    for each in reversed(seen):
        await service.reply(each, by_contract(each)[0])
    assert [done.memory_id for done in await asyncio.gather(*calls)] == [f"content {number}" for number in range(20)]


async def test_clients_on_the_same_reply_topic_do_not_get_each_others_replies(
    broker: RunningBroker, service: StandIn
) -> None:
    names = [f"client {number}" for number in range(2 * PARTITIONS)]
    async with (
        connect(broker, service) as a,
        connect(broker, service) as b,
        connect(broker, service) as c,
        connect(broker, service) as d,
        connect(broker, service) as e,
    ):
        clients = [a, b, c, d, e]
        calls = [client.remember(f"{name} {n}") for name in names for n, client in enumerate(clients)]
        told = [done.memory_id for done in await asyncio.gather(*calls)]
    assert told == [f"{name} {n}" for name in names for n in range(len(clients))]


async def test_the_first_of_two_replies_counts_and_the_second_harms_nobody(
    memory: MemoryClient, service: StandIn
) -> None:
    service.behaviour = lambda seen: [*by_contract(seen), error("internal", "the second reply")]
    assert (await memory.remember("first")).memory_id == "first"
    assert (await memory.remember("second")).memory_id == "second"


async def test_without_a_reply_a_call_ends_with_a_timeout_that_says_what_to_check(
    memory: MemoryClient, service: StandIn
) -> None:
    service.behaviour = silent
    with pytest.raises(MemoryTimeout, match=rf"offset 0 of {service.prefix}turns.*worker running"):
        await memory.remember("x", timeout=SOON)
    with pytest.raises(TimeoutError):
        await memory.retrieve("x", timeout=SOON)


async def test_a_late_reply_is_not_taken_for_the_next_one(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = silent
    with pytest.raises(MemoryTimeout):
        await memory.remember("given up", timeout=SOON)
    late = await service.next("turns")
    waiting = asyncio.create_task(memory.remember("in time"))
    now = await service.next("turns")
    for seen in (late, now):
        await service.reply(seen, by_contract(seen)[0])
    assert (await waiting).memory_id == "in time"


async def test_an_error_reply_is_raised_with_code_message_and_field(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = lambda _: [error("invalid_value", "no control characters", "scope.user_id")]
    for call in (memory.remember("x"), memory.retrieve("x"), memory.command("health")):
        with pytest.raises(MemoryServiceError) as raised:
            await call
        assert (raised.value.code, raised.value.field) == ("invalid_value", "scope.user_id")


async def test_a_reply_with_unknown_fields_is_read(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = lambda seen: [{**body, "new": 1} for body in by_contract(seen)]
    assert (await memory.remember("x")).memory_id == "x"
    assert (await memory.retrieve("x")).strategy == "hybrid"


async def test_a_command_gives_its_result(memory: MemoryClient, service: StandIn) -> None:
    assert await memory.command("forget", {"user": True}, project_id="p2") == {"told": "forget"}
    seen = await service.next("commands")
    assert seen.value["scope"] == {"user_id": "u1", "project_id": "p2"}
    assert seen.value["arguments"] == {"user": True}


async def test_the_mode_commands_are_written_by_the_contract(memory: MemoryClient, service: StandIn) -> None:
    shown = {"name": "journal", "embedder": "general", "embedding_dim": 384}
    service.behaviour = lambda _: [ok({**shown, "modes": [shown], "user_default": "journal"})]
    mode = await memory.declare_mode("journal", "general", decay="slow", for_project=True, project_id="p2")
    modes = await memory.list_modes()
    await memory.set_memory_mode("m1", "journal")
    asked = [(await service.next("commands")).value for _ in range(3)]
    assert [one["command"] for one in asked] == ["declare_mode", "list_modes", "set_memory_mode"]
    assert asked[0]["scope"] == {"user_id": "u1", "project_id": "p2"}
    given = {name: value for name, value in asked[0]["arguments"].items() if value is not None}
    assert given == {
        "name": "journal",
        "embedder": "general",
        "decay": "slow",
        "is_default": False,
        "for_project": True,
    }
    assert asked[2]["arguments"] == {"memory_id": "m1", "mode": "journal"}
    assert (mode.embedding_dim, modes.modes, modes.user_default) == (384, (mode,), "journal")


async def test_a_context_is_asked_for_by_the_contract(memory: MemoryClient, service: StandIn) -> None:
    written = await memory.remember("x")
    service.behaviour = lambda _: [
        ok(
            {
                "messages": [{"role": "assistant", "content": "Ok"}],
                "sections": {"recent_window": ["m1"]},
                "interaction_mode": "TASK",
                "interaction_confidence": 0.9,
                "budget": {},
                "tokens": {"total": 7},
            }
        )
    ]
    context = await memory.assemble(
        "fix it", conversation_id="c1", budget_tokens=900, pins=("m1",), projects=["p1", "p2"], mode="*"
    )
    seen = (await service.next("retrieve")).value
    assert seen == {
        "schema": "assemble.v1",
        "scope": {"user_id": "u1", "project_id": ["p1", "p2"]},
        "query": "fix it",
        "conversation_id": "c1",
        "mode": "*",
        "budget_tokens": 900,
        "interaction_mode": None,
        "system_prompt": None,
        "pins": ["m1"],
        "read_after": written.offset,
    }
    assert (context.interaction_mode, context.tokens["total"]) == ("TASK", 7)


async def test_any_record_of_the_contract_can_be_sent(memory: MemoryClient, service: StandIn) -> None:
    trigger = {"schema": "consolidate.v1", "scope": {"user_id": "u1"}, "mode": None}
    await memory.request("consolidate", trigger)
    assert (await service.next("consolidate")).value == trigger


async def test_a_question_names_its_projects_modes_and_times(memory: MemoryClient, service: StandIn) -> None:
    since = datetime(2026, 3, 1, tzinfo=UTC)
    await memory.retrieve("x", projects=["p1", "p2"], mode="*", since=since, until="2026-04-01T00:00:00Z", top_k=3)
    seen = (await service.next("retrieve")).value
    assert seen["scope"] == {"user_id": "u1", "project_id": ["p1", "p2"]}
    assert (seen["mode"], seen["top_k"]) == ("*", 3)
    assert (seen["since"], seen["until"]) == ("2026-03-01T00:00:00+00:00", "2026-04-01T00:00:00Z")


async def test_several_users_are_asked_one_by_one_and_merged(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = lambda seen: [finds(seen.value["scope"]["user_id"])]
    answer = await memory.retrieve("x", users=["b", "a", "c", "a"])
    assert [hit.scope["user_id"] for hit in answer.hits] == ["b", "a", "c"]
    assert set(answer.diagnostics) == {"a", "b", "c"}
    asked = [await service.next("retrieve") for _ in range(3)]
    assert {seen.key for seen in asked} == {b"a", b"b", b"c"}
    assert service.arrived.empty()


def one_user_fails(seen: Seen) -> list[Json]:
    user = seen.value["scope"]["user_id"]
    return [error("not_allowed", "not yours")] if user == "b" else [finds(user)]


async def test_a_failing_user_fails_the_call(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = one_user_fails
    with pytest.raises(MemoryServiceError, match="not yours"):
        await memory.retrieve("x", users=["a", "b"])


async def test_a_partial_answer_warns_of_a_failing_user(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = one_user_fails
    answer = await memory.retrieve("x", users=["a", "b"], partial=True)
    assert [hit.memory_id for hit in answer.hits] == ["m-a"]
    assert [warning.code for warning in answer.warnings] == ["not_allowed"]


async def read_after(memory: MemoryClient, service: StandIn, **how: Any) -> int | None:
    """What a question that is asked now says in `read_after`."""
    await memory.retrieve("x", **how)
    seen: int | None = (await service.next("retrieve")).value["read_after"]
    return seen


@pytest.mark.parametrize("wait", [True, False])
async def test_a_question_reads_after_the_own_writes_of_its_user(
    memory: MemoryClient, service: StandIn, *, wait: bool
) -> None:
    assert await read_after(memory, service) is None
    written = [await memory.remember(f"{number}", wait=wait) for number in range(3)]
    assert await read_after(memory, service) == written[-1].offset == 2
    assert await read_after(memory, service, users="somebody else") is None


async def test_a_question_reads_after_turns_only(memory: MemoryClient, service: StandIn) -> None:
    await memory.remember("x")
    for _ in range(3):
        await memory.command("health")
        assert await read_after(memory, service) == 0


async def test_read_after_is_that_of_each_user_in_a_question_about_several(
    memory: MemoryClient, service: StandIn
) -> None:
    offsets = {user: (await memory.remember("x", user_id=user)).offset for user in ("a", "b", "a")}
    service.behaviour = lambda seen: [finds(seen.value["scope"]["user_id"])]
    await memory.retrieve("x", users=["a", "b", "c"])
    asked = [(await service.next("retrieve")).value for _ in range(3)]
    assert {q["scope"]["user_id"]: q["read_after"] for q in asked} == {**offsets, "c": None}


@pytest.mark.parametrize("chosen", [None, 0, 41])
async def test_read_after_can_be_chosen(memory: MemoryClient, service: StandIn, chosen: int | None) -> None:
    await memory.remember("x")
    assert await read_after(memory, service, read_after=chosen) == chosen


async def test_a_turn_that_was_refused_or_not_answered_counts_as_written(
    memory: MemoryClient, service: StandIn
) -> None:
    service.behaviour = lambda seen: [error("internal", "no")] if seen.topic == "turns" else by_contract(seen)
    with pytest.raises(MemoryServiceError):
        await memory.remember("x")
    assert await read_after(memory, service) == 0


async def test_a_turn_whose_sender_gave_up_counts_once_kafka_has_it(
    memory: MemoryClient, service: StandIn, broker: RunningBroker
) -> None:
    # In the same partition as u1's, so that it is acknowledged after it.
    neighbour = next(user for n in count() if partition_of(user := f"n{n}") == partition_of("u1"))
    await memory.remember("x", user_id=neighbour)
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        with pytest.raises(MemoryTimeout, match="did not acknowledge"):
            await memory.remember("x", timeout=SOON, wait=False)
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    await memory.remember("x", user_id=neighbour)
    assert await read_after(memory, service) == 1


async def test_kafkas_acknowledgement_is_enough_where_no_reply_is_wanted(
    memory: MemoryClient, service: StandIn
) -> None:
    service.behaviour = silent
    remembered = await memory.remember("x", wait=False)
    seen = await service.next("turns")
    assert (remembered.partition, remembered.offset, remembered.memory_id) == (seen.partition, seen.offset, None)
    assert seen.headers == {}


async def test_closing_fails_the_calls_that_wait(broker: RunningBroker, service: StandIn) -> None:
    service.behaviour = silent
    async with connect(broker, service) as client:
        waiting = asyncio.create_task(client.remember("x"))
        await service.next("turns")
    with pytest.raises(MemoryClosed):
        await waiting
    with pytest.raises(MemoryClosed):
        await client.retrieve("x")


async def test_a_client_can_be_opened_again(broker: RunningBroker, service: StandIn) -> None:
    client = MemoryClient(broker.bootstrap, user_id="u1", topic_prefix=service.prefix)
    for content in ("once", "again"):
        async with client as memory:
            assert (await memory.remember(content)).memory_id == content


async def test_without_the_services_topics_opening_fails(broker: RunningBroker) -> None:
    with pytest.raises(MemoryUnreachable, match="service up"):
        async with MemoryClient(broker.bootstrap, topic_prefix="nobody.", timeout=SOON):
            pass


async def test_a_record_that_is_too_large_for_kafka_is_refused_at_once(memory: MemoryClient) -> None:
    with pytest.raises(MemoryUnreachable, match="larger than"):
        await memory.remember("x" * (9 << 20))


async def test_the_client_survives_a_broker_that_is_killed_and_comes_back(tmp_path: Path, prefix: str) -> None:
    port = free_port()
    with ExitStack() as brokers:
        broker = brokers.enter_context(running_broker(tmp_path, port))
        async with standing_in(broker.bootstrap, prefix) as service, connect(broker, service) as memory:
            await memory.remember("before")
            os.kill(broker.pid, signal.SIGKILL)
            with pytest.raises(MemoryTimeout):
                await memory.remember("during", timeout=SOON)
            brokers.enter_context(running_broker(tmp_path, port))
            assert (await memory.remember("after", timeout=30)).memory_id == "after"
            contents = [(await service.next("turns")).value["content"] for _ in range(3)]
            assert contents == ["before", "during", "after"]


async def test_closing_ends_while_the_broker_is_away(tmp_path: Path, prefix: str) -> None:
    with running_broker(tmp_path) as broker:
        async with standing_in(broker.bootstrap, prefix) as service:
            memory = await MemoryClient(broker.bootstrap, user_id="u1", topic_prefix=prefix, timeout=1).__aenter__()
            await memory.remember("before")
            await service.next("turns")
        os.kill(broker.pid, signal.SIGKILL)
        with pytest.raises(MemoryTimeout):
            await memory.remember("never")
        async with asyncio.timeout(20):
            await memory.__aexit__(None, None, None)
