"""A deployment with its own scope model: further fields separate memories on every path."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.scope_models import deployed_scope
from tests.builders.scopes import AgentScope
from tests.worlds.in_memory_pipeline import InMemoryPipeline

Json = dict[str, Any]

AGENTS = deployed_scope(AgentScope)

KETTLE = "The kettle is blue."


@dataclass
class AgentScopePipeline(InMemoryPipeline):
    async def remember_as(self, agent: str, text: str, turn_id: str) -> Json:
        turn = {"schema": "turn.v1", "turn_id": turn_id, "scope": {"user_id": "u1", "agent_id": agent}}
        return await self.ask(self.names.turns, {**turn, "conversation_id": "c1", "role": "user", "content": text})

    async def command_as(self, agent: str, command: str, **arguments: Any) -> Json:
        scope = {"user_id": "u1", "agent_id": agent}
        order = {"schema": "command.v1", "command": command, "scope": scope, "arguments": arguments}
        reply = await self.ask(self.names.commands, order)
        assert reply["status"] == "ok", reply
        return dict(reply["result"])

    async def found(self, **selected: Any) -> list[tuple[str, str]]:
        """Return the scopes and texts of the hits about kettles in the selected scopes."""
        reply = await self.retrieve("kettle", scope={"user_id": "u1", **selected}, top_k=50)
        return sorted((hit["scope"]["agent_id"], hit["text"]) for hit in reply["result"]["hits"])


@asynccontextmanager
async def agent_pipeline(directory: Path) -> AsyncIterator[AgentScopePipeline]:
    pipeline = AgentScopePipeline(directory, scope_model=AGENTS)
    async with pipeline.running():
        yield pipeline


async def test_same_turn_to_two_agents_is_two_memories(tmp_path: Path) -> None:
    async with agent_pipeline(tmp_path) as pipeline:
        replies = [await pipeline.remember_as(agent, KETTLE, "t-1") for agent in ("bob", "eve", "BOB")]
        ids = [reply["result"]["memory_id"] for reply in replies]
        assert len({*ids}) == 2
        assert ids[0] == ids[2]
        assert replies[2]["result"]["duplicate"] is True
        await pipeline.topics.settled()
        both = [("bob", KETTLE), ("eve", KETTLE)]
        assert await pipeline.found(agent_id="bob") == await pipeline.found(agent_id="BOB") == both[:1]
        assert await pipeline.found(agent_id=["bob", "eve"]) == await pipeline.found(agent_id="*") == both
        assert await pipeline.found() == [], "the default agent is main"
        assert await pipeline.found(agent_id="*", channel="mail") == []
        [memory] = [memory for memory in pipeline.memories.all() if memory.memory_id == ids[1]]
        assert memory.scope == {"user_id": "u1", "project_id": "default", "agent_id": "eve", "channel": "chat"}


async def test_invalid_request_is_a_dead_letter_with_its_field(tmp_path: Path) -> None:
    async with agent_pipeline(tmp_path) as pipeline:
        turn = {"schema": "turn.v1", "conversation_id": "c1", "role": "user", "content": KETTLE}
        refused = await pipeline.ask(pipeline.names.turns, {**turn, "scope": {"user_id": "u1", "channel": "fax"}})
        unknown = await pipeline.ask(pipeline.names.turns, {**turn, "scope": {"user_id": "u1", "team": "red"}})
        await pipeline.topics.settled()
        assert refused["error"]["code"] == "invalid_value"
        assert refused["error"]["field"] == "scope.channel"
        assert unknown["error"]["code"] == "unknown_scope_field"
        assert unknown["error"]["field"] == "scope.team"
        assert len(pipeline.dead_letters()) == 2


async def test_intentions_and_categories_are_an_agents_own(tmp_path: Path) -> None:
    async with agent_pipeline(tmp_path) as pipeline:
        await pipeline.command_as("bob", "set_intention", goals=["buy a kettle"])
        await pipeline.command_as("bob", "declare_category", name="kitchen", description="kettles and pots")
        goals = {agent: await pipeline.command_as(agent, "get_intention") for agent in ("bob", "eve")}
        assert [[goal["text"] for goal in goals[agent]["goals"]] for agent in goals] == [["buy a kettle"], []]
        listed = {agent: await pipeline.command_as(agent, "list_categories") for agent in ("bob", "eve")}
        assert [[category["name"] for category in listed[agent]["categories"]] for agent in listed] == [["kitchen"], []]


async def test_forget_and_consolidate_work_per_agent_and_per_user(tmp_path: Path) -> None:
    async with agent_pipeline(tmp_path) as pipeline:
        for agent in ("bob", "eve"):
            for number in range(3):
                await pipeline.remember_as(agent, f"We decided to descale the kettle on day {number}.", f"t-{number}")
        await pipeline.topics.settled()
        trigger = {"schema": "consolidate.v1", "scope": {"user_id": "u1", "agent_id": "bob"}, "mode": None}
        reply = await pipeline.ask(pipeline.names.consolidate, trigger)
        assert reply["status"] == "ok"
        assert len(reply["result"]["created"]) == 1
        published = [json.loads(record.value or b"") for record in pipeline.topics.records(pipeline.names.consolidated)]
        assert [event["scope"]["agent_id"] for event in published if event["schema"] == "consolidated.v1"] == ["bob"]
        await pipeline.topics.settled()
        assert {agent for agent, _ in await pipeline.found(agent_id="*")} == {"bob", "eve"}
        await pipeline.command_as("bob", "forget", project=True)
        await pipeline.topics.settled()
        assert {agent for agent, _ in await pipeline.found(agent_id="*")} == {"eve"}
        await pipeline.command_as("bob", "forget", user=True)
        await pipeline.topics.settled()
        assert await pipeline.found(agent_id="*") == []
        assert pipeline.dead_letters() == []


async def test_redelivered_command_is_recognised_after_a_restart(tmp_path: Path) -> None:
    async with agent_pipeline(tmp_path) as pipeline:
        await pipeline.remember_as("bob", KETTLE, "t-1")
        await pipeline.topics.settled()
        await pipeline.command_as("bob", "forget", project=True)
        await pipeline.topics.settled()
    async with pipeline.running():
        await pipeline.command_as("bob", "list_modes")
        await pipeline.command_as("bob", "forget", project=True)
        await pipeline.topics.settled()
        assert await pipeline.found(agent_id="*") == []
        assert pipeline.dead_letters() == []
