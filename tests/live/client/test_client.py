"""The client on a real broker, with a stand-in for the service that can be silent, late, wrong or reply twice."""

import asyncio
import time
from datetime import UTC, datetime

import pytest
from modestream_client import MemoryClient, MemoryServiceError, MemoryTimeout, SyncMemoryClient
from modestream_client.vocabulary import Decay, MemoryType

from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.stand_in import (
    PARTITIONS,
    SOON,
    Json,
    ReceivedRecord,
    StandIn,
    connected,
    error,
    finds,
    ok,
    partition_of,
    reply_by_contract,
    silent,
)


async def test_turn_is_written_by_the_contract_and_its_reply_is_typed(memory: MemoryClient, service: StandIn) -> None:
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
    assert seen.value["role"] == "user"
    assert seen.value["conversation_id"] == "default"
    assert seen.value["occurred_at"] == "2026-03-01T09:30:00+00:00"
    assert seen.value["resources"] == [{"uri": "s3://a.png", "text": "a caption"}]
    assert remembered.memory_id == "The deploy target is fly.io now."
    assert remembered.turn_id == "t-17"
    assert remembered.partition == seen.partition
    assert remembered.offset == seen.offset
    assert remembered.duplicate is False


async def test_the_client_without_await_writes_from_a_thread(live_broker: RunningBroker, service: StandIn) -> None:
    def use() -> str | None:
        with SyncMemoryClient(f"kafka://{live_broker.bootstrap}", topic_prefix=service.prefix) as memory:
            return memory.remember("The kettle is blue.", user_id="u1").memory_id

    assert await asyncio.to_thread(use) == "The kettle is blue."


@pytest.mark.parametrize(("user", "key"), [("u1", "u1"), ("a/b%", "a%2Fb%25"), ("zoë", "zoë"), ("other", "other")])
async def test_every_record_has_its_canonical_key_and_partition(
    memory: MemoryClient, service: StandIn, user: str, key: str
) -> None:
    await memory.remember("x", user_id=user)
    await memory.retrieve("x", users=user)
    await memory.command("forget", {"user": True}, user_id=user)
    for topic in ("turns", "retrieve", "commands"):
        seen = await service.next(topic)
        assert seen.key == key.encode()
        assert seen.partition == partition_of(key)


async def test_requests_carry_a_deadline_and_turns_do_not(memory: MemoryClient, service: StandIn) -> None:
    before = time.time()
    await memory.remember("x", timeout=60)
    await memory.retrieve("x", timeout=60)
    assert "deadline" not in (await service.next("turns")).headers
    deadline = int((await service.next("retrieve")).headers["deadline"]) / 1000
    assert before + 59 < deadline <= time.time() + 60


async def test_concurrent_calls_get_their_own_replies_in_any_order(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = silent
    calls = [asyncio.create_task(memory.remember(f"content {number}")) for number in range(20)]
    seen = [await service.next("turns") for _ in calls]
    for each in reversed(seen):
        await service.reply(each, reply_by_contract(each)[0])
    assert [done.memory_id for done in await asyncio.gather(*calls)] == [f"content {number}" for number in range(20)]


async def test_clients_on_one_reply_topic_get_only_their_replies(live_broker: RunningBroker, service: StandIn) -> None:
    names = [f"client {number}" for number in range(2 * PARTITIONS)]
    async with (
        connected(live_broker, service) as a,
        connected(live_broker, service) as b,
        connected(live_broker, service) as c,
        connected(live_broker, service) as d,
        connected(live_broker, service) as e,
    ):
        clients = [a, b, c, d, e]
        calls = [client.remember(f"{name} {n}") for name in names for n, client in enumerate(clients)]
        memory_ids = [done.memory_id for done in await asyncio.gather(*calls)]
    assert memory_ids == [f"{name} {n}" for name in names for n in range(len(clients))]


async def test_second_reply_is_ignored(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = lambda seen: [*reply_by_contract(seen), error("internal", "the second reply")]
    assert (await memory.remember("first")).memory_id == "first"
    assert (await memory.remember("second")).memory_id == "second"


async def test_call_without_a_reply_times_out_with_advice(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = silent
    with pytest.raises(MemoryTimeout, match=rf"offset 0 of {service.prefix}turns.*worker running"):
        await memory.remember("x", timeout=SOON)
    with pytest.raises(TimeoutError):
        await memory.retrieve("x", timeout=SOON)


async def test_late_reply_is_not_used_for_the_next_request(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = silent
    with pytest.raises(MemoryTimeout):
        await memory.remember("given up", timeout=SOON)
    late = await service.next("turns")
    waiting = asyncio.create_task(memory.remember("in time"))
    now = await service.next("turns")
    for seen in (late, now):
        await service.reply(seen, reply_by_contract(seen)[0])
    assert (await waiting).memory_id == "in time"


async def test_error_reply_is_raised_with_code_message_and_field(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = lambda _: [error("invalid_value", "no control characters", "scope.user_id")]
    for call in (memory.remember("x"), memory.retrieve("x"), memory.command("health")):
        with pytest.raises(MemoryServiceError) as raised:
            await call
        assert raised.value.code == "invalid_value"
        assert raised.value.field == "scope.user_id"


async def test_reply_with_unknown_fields_is_accepted(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = lambda seen: [{**body, "new": 1} for body in reply_by_contract(seen)]
    assert (await memory.remember("x")).memory_id == "x"
    assert (await memory.retrieve("x")).strategy == "hybrid"


async def test_command_gives_its_result(memory: MemoryClient, service: StandIn) -> None:
    assert await memory.command("forget", {"user": True}, project_id="p2") == {"told": "forget"}
    seen = await service.next("commands")
    assert seen.value["scope"] == {"user_id": "u1", "project_id": "p2"}
    assert seen.value["arguments"] == {"user": True}


async def test_mode_commands_are_written_by_the_contract(memory: MemoryClient, service: StandIn) -> None:
    shown = {"name": "journal", "embedder": "general", "embedding_dim": 384}
    service.behaviour = lambda _: [ok({**shown, "modes": [shown], "user_default": "journal"})]
    by_type: dict[MemoryType, Decay] = {"semantic": "slow"}
    mode = await memory.declare_mode("journal", "general", decay=by_type, for_project=True, project_id="p2")
    modes = await memory.list_modes()
    with pytest.raises(MemoryServiceError, match="can't be read"):
        await memory.set_memory_mode("m1", "journal")
    by_topic = [(await service.next(topic)).value for topic in ("commands", "retrieve", "commands")]
    asked = [by_topic[0], by_topic[2]]
    assert [command["command"] for command in by_topic] == ["declare_mode", "list_modes", "set_memory_mode"]
    assert asked[0]["scope"] == {"user_id": "u1", "project_id": "p2"}
    arguments = {name: value for name, value in asked[0]["arguments"].items() if value is not None}
    assert arguments == {
        "name": "journal",
        "embedder": "general",
        "decay": {"semantic": "slow"},
        "is_default": False,
        "for_project": True,
    }
    assert asked[1]["arguments"] == {"memory_id": "m1", "mode": "journal"}
    assert mode.embedding_dim == 384
    assert modes.modes == (mode,)
    assert modes.user_default == "journal"


async def test_context_request_follows_the_contract(memory: MemoryClient, service: StandIn) -> None:
    written = await memory.remember("x")
    service.behaviour = lambda _: [
        ok(
            {
                "messages": [{"role": "assistant", "content": "Ok"}],
                "references": ["m1"],
                "sections": {"recent_window": ["m1"]},
                "interaction_mode": "TASK",
                "interaction_confidence": 0.9,
                "budget": {},
                "tokens": {"total": 7},
            }
        )
    ]
    context = await memory.assemble(
        "fix it",
        conversation_id="c1",
        budget_tokens=900,
        reserve_tokens=100,
        min_score=0.1,
        intent="fix",
        examples=[{"role": "user", "content": "Like this."}],
        prefix="before",
        suffix="after",
        append_query=True,
        question_prefix="Q: ",
        question_suffix="?",
        remember=[{"role": "user", "content": "It is late."}],
        pins=("m1",),
        filters={"metadata": {"ticket": (7, "7")}},
        projects=["p1", "p2"],
        mode="*",
    )
    seen = (await service.next("retrieve")).value
    assert seen == {
        "schema": "assemble.v1",
        "scope": {"user_id": "u1", "project_id": ["p1", "p2"]},
        "query": "fix it",
        "conversation_id": "c1",
        "mode": "*",
        "budget_tokens": 900,
        "reserve_tokens": 100,
        "format": "compact",
        "min_score": 0.1,
        "interaction_mode": None,
        "intent": "fix",
        "system_prompt": None,
        "messages": [{"role": "user", "content": "Like this."}],
        "prefix": "before",
        "suffix": "after",
        "append_query": True,
        "question_prefix": "Q: ",
        "question_suffix": "?",
        "remember": [{"role": "user", "content": "It is late."}],
        "pins": ["m1"],
        "filters": {"metadata": {"ticket": [7, "7"]}},
        "as_of": None,
        "read_after": written.offset,
    }
    assert context.interaction_mode == "TASK"
    assert context.tokens["total"] == 7
    assert context.references == ("m1",)


async def test_any_record_of_the_contract_can_be_sent(memory: MemoryClient, service: StandIn) -> None:
    trigger = {"schema": "consolidate.v1", "scope": {"user_id": "u1"}, "mode": None}
    await memory.request("consolidate", trigger)
    assert (await service.next("consolidate")).value == trigger


async def test_query_has_its_projects_modes_and_times(memory: MemoryClient, service: StandIn) -> None:
    since = datetime(2026, 3, 1, tzinfo=UTC)
    await memory.retrieve("x", projects=["p1", "p2"], mode="*", since=since, until="2026-04-01T00:00:00Z", top_k=3)
    seen = (await service.next("retrieve")).value
    assert seen["scope"] == {"user_id": "u1", "project_id": ["p1", "p2"]}
    assert seen["mode"] == "*"
    assert seen["top_k"] == 3
    assert seen["since"] == "2026-03-01T00:00:00+00:00"
    assert seen["until"] == "2026-04-01T00:00:00Z"


async def test_query_for_several_users_is_split_and_merged(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = lambda seen: [finds(seen.value["scope"]["user_id"])]
    answer = await memory.retrieve("x", users=["b", "a", "c", "a"])
    assert [hit.scope["user_id"] for hit in answer.hits] == ["b", "a", "c"]
    assert set(answer.diagnostics) == {"a", "b", "c"}
    asked = [await service.next("retrieve") for _ in range(3)]
    assert {seen.key for seen in asked} == {b"a", b"b", b"c"}
    assert service.arrived.empty()


def one_user_fails(seen: ReceivedRecord) -> list[Json]:
    user = seen.value["scope"]["user_id"]
    return [error("not_allowed", "not yours")] if user == "b" else [finds(user)]


async def test_failing_user_fails_the_call(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = one_user_fails
    with pytest.raises(MemoryServiceError, match="not yours"):
        await memory.retrieve("x", users=["a", "b"])


async def test_partial_answer_warns_of_a_failing_user(memory: MemoryClient, service: StandIn) -> None:
    service.behaviour = one_user_fails
    answer = await memory.retrieve("x", users=["a", "b"], partial=True)
    assert [hit.memory_id for hit in answer.hits] == ["m-a"]
    assert [warning.code for warning in answer.warnings] == ["not_allowed"]
