"""A deployment with a scope model of its own: further fields tell memories apart on every path of the map."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from schemas.scope_models import bind_issued_scope, deployed_scope
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.worker_context import WorkerContext
from streams.topology import Agents
from tests.builders.scopes import AgentScope
from tests.fakes.json_table import FakeJsonTable
from tests.worlds.in_memory_pipeline import InMemoryMap

Json = dict[str, Any]

AGENTS = deployed_scope(AgentScope)

KETTLE = "The kettle is blue."


@dataclass
class AgentsMap(InMemoryMap):
    """A map whose memories belong to a user and an agent."""

    def wired(self, words: SqliteLexicalIndex) -> tuple[Agents, WorkerContext]:
        agents, ctx = super().wired(words)
        return agents, replace(ctx, scope_model=AGENTS)

    async def tell(self, agent: str, text: str, turn_id: str) -> Json:
        """Publish a turn that an agent was told."""
        turn = {"schema": "turn.v1", "turn_id": turn_id, "scope": {"user_id": "u1", "agent_id": agent}}
        return await self.ask(self.names.turns, {**turn, "conversation_id": "c1", "role": "user", "content": text})

    async def order(self, agent: str, command: str, **arguments: Any) -> Json:
        """Give a command about an agent's memories."""
        scope = {"user_id": "u1", "agent_id": agent}
        order = {"schema": "command.v1", "command": command, "scope": scope, "arguments": arguments}
        reply = await self.ask(self.names.commands, order)
        assert reply["status"] == "ok", reply
        return dict(reply["result"])

    async def found(self, **selected: Any) -> list[tuple[str, str]]:
        """Who was told of kettles, and what, of the selected scopes."""
        reply = await self.retrieve("kettle", scope={"user_id": "u1", **selected}, top_k=50)
        return sorted((hit["scope"]["agent_id"], hit["text"]) for hit in reply["result"]["hits"])


@asynccontextmanager
async def a_map(directory: Path) -> AsyncIterator[AgentsMap]:
    kept = AgentsMap(directory, issued=FakeJsonTable(bind_issued_scope(AGENTS)))
    async with kept.running():
        yield kept


async def test_the_same_turn_told_to_two_agents_is_two_memories_and_each_is_selected_by_its_agent(
    tmp_path: Path,
) -> None:
    async with a_map(tmp_path) as the_map:
        replies = [await the_map.tell(agent, KETTLE, "t-1") for agent in ("bob", "eve", "BOB")]
        ids = [reply["result"]["memory_id"] for reply in replies]
        assert (len({*ids}), ids[0] == ids[2], replies[2]["result"]["duplicate"]) == (2, True, True)
        await the_map.topics.settled()
        both = [("bob", KETTLE), ("eve", KETTLE)]
        assert await the_map.found(agent_id="bob") == await the_map.found(agent_id="BOB") == both[:1]
        assert await the_map.found(agent_id=["bob", "eve"]) == await the_map.found(agent_id="*") == both
        assert await the_map.found() == [], "the agent that is left out is main"
        assert await the_map.found(agent_id="*", channel="mail") == []
        [memory] = [memory for memory in the_map.memories.all() if memory.memory_id == ids[1]]
        assert memory.scope == {"user_id": "u1", "project_id": "default", "agent_id": "eve", "channel": "chat"}


async def test_what_the_model_does_not_take_is_a_dead_letter_and_answered_with_its_field(tmp_path: Path) -> None:
    async with a_map(tmp_path) as the_map:
        turn = {"schema": "turn.v1", "conversation_id": "c1", "role": "user", "content": KETTLE}
        refused = await the_map.ask(the_map.names.turns, {**turn, "scope": {"user_id": "u1", "channel": "fax"}})
        unknown = await the_map.ask(the_map.names.turns, {**turn, "scope": {"user_id": "u1", "team": "red"}})
        await the_map.topics.settled()
        assert (refused["error"]["code"], refused["error"]["field"]) == ("invalid_value", "scope.channel")
        assert (unknown["error"]["code"], unknown["error"]["field"]) == ("unknown_scope_field", "scope.team")
        assert len(the_map.dead_letters()) == 2


async def test_intentions_and_categories_are_an_agents_own(tmp_path: Path) -> None:
    async with a_map(tmp_path) as the_map:
        await the_map.order("bob", "set_intention", goals=["buy a kettle"])
        await the_map.order("bob", "declare_category", name="kitchen", description="kettles and pots")
        goals = {agent: await the_map.order(agent, "get_intention") for agent in ("bob", "eve")}
        assert [[goal["text"] for goal in goals[agent]["goals"]] for agent in goals] == [["buy a kettle"], []]
        listed = {agent: await the_map.order(agent, "list_categories") for agent in ("bob", "eve")}
        assert [[one["name"] for one in listed[agent]["categories"]] for agent in listed] == [["kitchen"], []]


async def test_forgetting_and_consolidating_are_about_one_agent_and_the_user_is_all_of_them(tmp_path: Path) -> None:
    async with a_map(tmp_path) as the_map:
        for agent in ("bob", "eve"):
            for number in range(3):
                await the_map.tell(agent, f"We decided to descale the kettle on day {number}.", f"t-{number}")
        await the_map.topics.settled()
        trigger = {"schema": "consolidate.v1", "scope": {"user_id": "u1", "agent_id": "bob"}, "mode": None}
        reply = await the_map.ask(the_map.names.consolidate, trigger)
        assert reply["status"] == "ok"
        assert len(reply["result"]["created"]) == 1
        told = [json.loads(one.value or b"") for one in the_map.topics.records(the_map.names.consolidated)]
        assert [one["scope"]["agent_id"] for one in told if one["schema"] == "consolidated.v1"] == ["bob"]
        await the_map.topics.settled()
        assert {agent for agent, _ in await the_map.found(agent_id="*")} == {"bob", "eve"}
        await the_map.order("bob", "forget", project=True)
        await the_map.topics.settled()
        assert {agent for agent, _ in await the_map.found(agent_id="*")} == {"eve"}
        await the_map.order("bob", "forget", user=True)
        await the_map.topics.settled()
        assert await the_map.found(agent_id="*") == []
        assert the_map.dead_letters() == []


async def test_after_a_restart_a_command_that_comes_again_is_the_same_one(tmp_path: Path) -> None:
    async with a_map(tmp_path) as the_map:
        await the_map.tell("bob", KETTLE, "t-1")
        await the_map.topics.settled()
        await the_map.order("bob", "forget", project=True)
        await the_map.topics.settled()
    async with the_map.running():
        await the_map.order("bob", "list_modes")
        await the_map.order("bob", "forget", project=True)
        await the_map.topics.settled()
        assert await the_map.found(agent_id="*") == []
        assert the_map.dead_letters() == []
