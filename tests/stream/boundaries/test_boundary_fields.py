"""A boundary of two fields over Kafka: users of one name in two organizations see nothing of each other."""

import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from modestream_client import MemoryServiceError

from agents.commands.admit import Admit
from schemas.scope_models import deployed_scope
from schemas.state.policies import policy_of
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.adapters.policy_file import PolicyFile
from streams.flow.background import boundaries
from streams.topology import BackgroundHooks, subscriptions
from streams.wire.partitioning import partition_of
from tests.builders.boundary_scopes import OrganizationScope, SharedScope
from tests.builders.turns import record
from tests.worlds.in_memory_boundaries import InMemoryBoundaryLog
from tests.worlds.in_memory_client import client_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.tenants import TENANTS, Json, member, pipeline_of, sent, tenant

KETTLE = "We decided to buy the blue kettle of {} for the kitchen."

USERS = [("acme", "a"), ("acme", "b"), ("globex", "a"), ("globex", "b")]
"""The same user names in two organizations."""


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries, "PUBLISH_INTERVAL_S", 0.01)


@pytest.fixture
async def tenants(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    """A deployment of organizations and users."""
    async with pipeline_of(tmp_path).running() as running:
        yield running


async def remember_everywhere(pipeline: InMemoryPipeline) -> dict[tuple[str, str], str]:
    """Have each user remember a turn of the same id, in a mode, a category and with a goal of the same name."""
    ids = {}
    for organization, user in USERS:
        memory = member(pipeline, organization, user)
        await memory.declare_mode("journal", "tiny32")
        await memory.declare_category(organization, f"what {organization} buys")
        await memory.set_intention(goals=[f"furnish {organization}"])
        said = await memory.remember(KETTLE.format(f"{organization} {user}"), turn_id="t-1", mode="journal")
        ids[organization, user] = said.memory_id or ""
    await pipeline.topics.settled()
    return ids


async def everything_of(
    pipeline: InMemoryPipeline, organization: str, user: str, modes: Iterable[str | None] = ("*", "journal", None)
) -> str:
    """Return what every read path shows to a user, as text."""
    memory = member(pipeline, organization, user)
    shown: list[Any] = [await memory.retrieve("blue kettle", mode=mode, top_k=100) for mode in modes]
    shown += [await memory.retrieve("blue kettle", projects="*", mode="*", depth="auto", explain=True)]
    shown += [await memory.retrieve("blue kettle", mode="*", types=["semantic", "procedural", "state_object"])]
    shown += [await memory.assemble("which kettle?", mode=mode, conversation_id="default") for mode in ("*", None)]
    shown += [[each async for each in memory.iter_memories(projects="*")]]
    shown += [[conversation async for conversation in memory.iter_conversations(projects="*")]]
    shown += [
        [project async for project in memory.iter_projects()],
        await memory.map(mode="*"),
        await memory.list_modes(),
    ]
    shown += [await memory.get_intention(), await memory.health()]
    shown += [await memory.list_categories(include_items=True, include_summary=True)]
    return repr(shown)


async def test_users_of_one_name_in_two_organizations_share_nothing(tenants: InMemoryPipeline) -> None:
    ids = await remember_everywhere(tenants)
    assert len({*ids.values()}) == len(USERS)
    for organization, user in USERS:
        shown = await everything_of(tenants, organization, user)
        assert KETTLE.format(f"{organization} {user}") in shown
        assert f"furnish {organization}" in shown
        others = [owner for owner in USERS if owner != (organization, user)]
        assert not any(KETTLE.format(" ".join(owner)) in shown or ids[owner] in shown for owner in others)
        assert {"acme": "globex", "globex": "acme"}[organization] not in shown
        memory = member(tenants, organization, user)
        for foreign in (ids[owner] for owner in others):
            with pytest.raises(MemoryServiceError, match="not_found"):
                await memory.get_memory(foreign)
            with pytest.raises(MemoryServiceError, match="not_found"):
                await memory.set_memory_mode(foreign, "general")
            assert (await memory.forget(memory_id=foreign)).forgotten == 0
    assert {memory.boundary for memory in tenants.memories.all()} == {"acme/a", "acme/b", "globex/a", "globex/b"}
    assert tenants.dead_letters() == []


async def test_other_organization_changes_no_ranking(tmp_path: Path) -> None:
    answers = []
    for organizations in (["acme"], ["acme", "globex"]):
        async with pipeline_of(tmp_path / str(len(organizations)), partitions=1).running() as pipeline:
            for organization in organizations:
                memory = member(pipeline, organization, "a")
                for number in range(8):
                    text = f"The kettle of {organization} was descaled {number} times by Ana."
                    await memory.remember(text, turn_id=f"t-{number}", occurred_at="2026-03-01T09:30:00Z")
            await pipeline.topics.settled()
            found = await member(pipeline, "acme", "a").retrieve("who descaled the kettle?", explain=True)
            answers.append(found.hits)
    assert len(answers[0]) == 8
    assert answers[0] == answers[1]


async def test_forgetting_one_user_leaves_the_other(tenants: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries, "PUBLISH_INTERVAL_S", 0.01)
    await remember_everywhere(tenants)
    assert (await member(tenants, "acme", "a").forget(user=True)).forgotten > 0
    await tenants.topics.settled()
    gone = await everything_of(tenants, "acme", "a", modes=("*", None))
    assert "kettle of" not in gone
    assert "furnish" not in gone
    assert [mode.name for mode in (await member(tenants, "acme", "a").list_modes()).modes] == ["general"]
    for organization, user in USERS[1:]:
        shown = await everything_of(tenants, organization, user)
        assert KETTLE.format(f"{organization} {user}") in shown
        assert f"furnish {organization}" in shown
    again = await member(tenants, "acme", "a").remember(KETTLE.format("acme a"), turn_id="t-1")
    assert [warning.code for warning in again.warnings] == ["forgotten"]
    told = InMemoryBoundaryLog(tenants.topics)
    await tenants.until(lambda: told.values("acme/a")[-1:] == [None] and bool(told.values("globex/a")))
    assert None not in told.values("globex/a")
    assert None not in told.values("acme/b")


async def test_topic_of_boundaries_tells_all_boundary_fields(tenants: InMemoryPipeline) -> None:
    await member(tenants, "ac/me", "5%").remember("The kettle is blue.")
    told, name = InMemoryBoundaryLog(tenants.topics), "ac%2Fme/5%25"
    await tenants.until(lambda: any(summary["memories"] == 1 for summary in told.values(name)))
    assert told.values(name)[-1]["boundary"] == name
    assert told.values(name)[-1]["scope"] == {"organization_id": "ac/me", "user_id": "5%"}


async def test_values_that_join_alike_are_two_boundaries(tenants: InMemoryPipeline) -> None:
    first, second = member(tenants, "a/b", "c"), member(tenants, "a", "b/c")
    await first.remember("The kettle is blue.", turn_id="t-1")
    await second.remember("The kettle is red.", turn_id="t-1")
    await tenants.topics.settled()
    assert {record.key for record in tenants.topics.records(tenants.names.turns)} == {b"a%2Fb/c", b"a/b%2Fc"}
    assert [hit.text for hit in (await first.retrieve("kettle")).hits] == ["The kettle is blue."]
    assert (await first.forget(user=True)).forgotten > 0
    assert [hit.text for hit in (await second.retrieve("kettle")).hits] == ["The kettle is red."]


WRONG_KEYS = {"a": b"a", "b": b"acme", "c": b"globex/c", "d": b"acme%2Fd", "e": None}
"""A key that is none of the user's, by user."""


async def test_record_with_another_key_is_moved(tenants: InMemoryPipeline) -> None:
    for user, key in WRONG_KEYS.items():
        right = partition_of(f"acme/{user}".encode(), tenants.partitions)
        wrong = (right + 1) % tenants.partitions
        turn = {"schema": "turn.v1", "turn_id": "t-1", "conversation_id": "c1", "role": "user"}
        message = {**turn, "scope": tenant("acme", user), "content": f"The kettle of {user} is blue."}
        reply = await sent(tenants, tenants.names.turns, message, key=key, partition=wrong)
        assert reply["status"] == "ok"
        asked = {"schema": "retrieve.v1", "scope": tenant("acme", user), "query": "kettle"}
        found = await sent(tenants, tenants.names.retrieve, asked, key=key, partition=wrong)
        assert [hit["text"] for hit in found["result"]["hits"]] == [f"The kettle of {user} is blue."]
        written, moved = tenants.topics.records(tenants.names.turns)[-2:]
        assert moved.partition == right
        assert moved.key == f"acme/{user}".encode()
        assert moved.timestamp_ms == written.timestamp_ms
        assert (await member(tenants, "globex", user).retrieve("kettle")).hits == ()
    assert tenants.dead_letters() == []


REFUSED_SELECTORS: list[tuple[Json, str, str]] = [
    ({"organization_id": ["acme", "globex"]}, "selector_refused", "organization_id"),
    ({"organization_id": ["acme"]}, "selector_refused", "organization_id"),
    ({"organization_id": "*"}, "selector_refused", "organization_id"),
    ({"user_id": ["a", "b"]}, "selector_refused", "user_id"),
    ({"user_id": "*"}, "selector_refused", "user_id"),
    ({"organization_id": None}, "invalid_value", "organization_id"),
    ({"organization_id": ""}, "invalid_value", "organization_id"),
    ({"team": "red"}, "unknown_scope_field", "team"),
]
"""Changes of a sound selector, with the code and the field of the error."""


async def test_selector_names_every_boundary_field_exactly(tenants: InMemoryPipeline) -> None:
    for changed, code, field in REFUSED_SELECTORS:
        given = {name: value for name, value in (tenant("acme", "a") | changed).items() if value is not None}
        for schema in ("retrieve.v1", "assemble.v1", "list.v1", "map.v1"):
            what = {"what": "memories"} if schema == "list.v1" else {"query": "kettle"}
            reply = await sent(tenants, tenants.names.retrieve, {"schema": schema, "scope": given, **what})
            assert reply["error"]["code"] == code
            assert reply["error"]["field"] == f"scope.{field}"
            assert code != "selector_refused" or f"{field} is a boundary" in reply["error"]["message"]


async def test_write_without_a_boundary_field_is_a_dead_letter(tenants: InMemoryPipeline) -> None:
    turn = {"schema": "turn.v1", "conversation_id": "c1", "role": "user", "content": "x", "scope": {"user_id": "a"}}
    reply = await sent(tenants, tenants.names.turns, turn)
    await tenants.topics.settled()
    assert reply["error"]["code"] == "invalid_value"
    assert reply["error"]["field"] == "scope.organization_id"
    [letter] = tenants.dead_letters()
    assert letter.value == json.dumps(turn).encode()


async def test_grants_are_of_boundaries(tmp_path: Path) -> None:
    grants = {
        "acme": [{"organization_id": "acme", "user_id": "*"}],
        "ana": [{"organization_id": ["acme", "globex"], "user_id": "a", "project_id": "p1"}],
    }
    admit = Admit(PolicyFile(policy_of(TENANTS).model_validate({"principals": grants})))

    async def outcome(principal: str, organization: str, user: str, project: str) -> list[str]:
        scope = {**tenant(organization, user), "project_id": project}
        turn = {"schema": "turn.v1", "conversation_id": "c1", "role": "user", "content": "The kettle is blue."}
        asked = {"schema": "retrieve.v1", "query": "kettle"}
        forget = {"schema": "command.v1", "command": "forget", "arguments": {"user": True}}
        headers = (("principal", principal.encode()),)
        names = pipeline.names
        requests = ((names.turns, turn), (names.retrieve, asked), (names.commands, forget))
        replies = [await sent(pipeline, topic, {**request, "scope": scope}, headers) for topic, request in requests]
        return [reply["status"] if reply["status"] == "ok" else reply["error"]["code"] for reply in replies]

    async with pipeline_of(tmp_path, admit=admit).running() as pipeline:
        assert await outcome("acme", "acme", "a", "p1") == ["ok", "ok", "ok"]
        assert await outcome("acme", "globex", "a", "p1") == ["not_allowed"] * 3
        assert await outcome("ana", "globex", "a", "p1") == ["ok", "ok", "not_allowed"]
        assert await outcome("ana", "globex", "a", "p2") == ["not_allowed"] * 3
        assert await outcome("ana", "acme", "b", "p1") == ["not_allowed"] * 3


async def test_records_take_turns_by_boundary(tenants: InMemoryPipeline) -> None:
    agents, ctx = tenants.wire(SqliteLexicalIndex(tenants.directory / "partitions"))
    hooks = BackgroundHooks(lambda *_: None, lambda *_: None)
    shares = {subscription.topic: subscription.step.fair_share for subscription in subscriptions(agents, hooks, ctx)}
    for topic in (tenants.names.turns, tenants.names.retrieve, tenants.names.commands):
        share = shares[topic]
        assert share is not None
        keys = [share.key_of(record({"scope": tenant(name, "a")}, topic=topic)) for name in ("acme", "globex")]
        assert keys == ["acme/a", "globex/a"]


async def test_client_fans_out_over_boundaries_and_reads_its_own_writes(tenants: InMemoryPipeline) -> None:
    memory = member(tenants, "acme", "a")
    for organization, user in USERS[:3]:
        await memory.remember(f"The kettle of {organization} {user}.", user_id=tenant(organization, user))
    answer = await memory.retrieve("kettle", users=[tenant("acme", "a"), "globex/a", tenant("globex", "a")])
    assert {hit.text for hit in answer.hits} == {"The kettle of acme a.", "The kettle of globex a."}
    assert {*answer.diagnostics} == {"acme/a", "globex/a"}
    with pytest.raises(ValueError, match="names no organization_id/user_id"):
        await memory.retrieve("kettle", users="globex")
    with pytest.raises(ValueError, match="organization_id, user_id"):
        await memory.retrieve("kettle", users={"organization_id": "globex"})


async def test_scopes_without_users_belong_to_an_organization(tmp_path: Path) -> None:
    scope = deployed_scope(OrganizationScope)
    async with pipeline_of(tmp_path, scope).running() as pipeline:
        acme, globex = (
            client_of(pipeline, user_id=organization, boundary=scope.boundary_fields)
            for organization in ("acme", "globex")
        )
        for memory in (acme, globex):
            await memory.declare_category("kitchen", "kettles")
            await memory.set_intention(goals=["buy a kettle"])
            await memory.remember("We decided to buy the blue kettle.", turn_id="t-1")
        await pipeline.topics.settled()
        [hit] = (await acme.retrieve("kettle", projects="*")).hits
        assert hit.scope == {"organization_id": "acme", "project_id": "default"}
        assert (await acme.forget(user=True)).forgotten > 0
        assert (await acme.retrieve("kettle")).hits == ()
        assert (await acme.get_intention()).goals == ()
        assert len((await globex.retrieve("kettle")).hits) == 1
        assert len((await globex.get_intention()).goals) == 1
        refused = {"schema": "retrieve.v1", "scope": {"organization_id": "acme", "user_id": "a"}, "query": "x"}
        reply = await sent(pipeline, pipeline.names.retrieve, refused)
        assert reply["error"]["code"] == "unknown_scope_field"
        assert reply["error"]["field"] == "scope.user_id"


async def test_users_within_an_organization_are_scopes_where_it_is_the_boundary(tmp_path: Path) -> None:
    scope = deployed_scope(SharedScope)
    async with pipeline_of(tmp_path, scope).running() as pipeline:
        for user in ("a", "b"):
            memory = client_of(pipeline, user_id="acme", boundary=scope.boundary_fields, scope={"user_id": user})
            await memory.remember(f"The kettle of {user}.", turn_id="t-1")
        await pipeline.topics.settled()
        assert [hit.text for hit in (await memory.retrieve("kettle")).hits] == ["The kettle of b."]
        assert len((await memory.retrieve("kettle", scope={"user_id": ["a", "b"]})).hits) == 2
        assert (await memory.forget(project=True)).forgotten > 0
        left = await memory.retrieve("kettle", scope={"user_id": "*"})
        assert [hit.text for hit in left.hits] == ["The kettle of a."]
        # The boundary is the organization, whichever user the scope names.
        assert (await memory.forget(user=True)).forgotten > 0
        assert (await memory.retrieve("kettle", scope={"user_id": "*"})).hits == ()
