"""Intentions through the whole pipeline: they follow the turns and are removed with them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agents.commands.admit import Admit
from schemas.models.language import Profiles
from schemas.state.policies import Policy
from streams.adapters.policy_file import PolicyFile
from streams.wire.partitioning import partition_of
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import command_message

PARTS = ("goals", "constraints", "blocking_errors", "decisions")

STORY = {
    "t-1": "We want to ship the beta in May.",
    "t-2": "We decided to use PostgreSQL for the ledger. The API must answer within 200 ms.",
    "t-3": "The login fails with a 500 error.",
    "t-4": "It works now.",
    "t-5": "We shipped the beta.",
}


async def remember_story(pipeline: InMemoryPipeline, *turn_ids: str) -> None:
    """Publish turns of the story, a minute apart, and wait until all records are processed."""
    for turn_id in turn_ids or STORY:
        minute = turn_id.removeprefix("t-")
        await pipeline.remember(STORY[turn_id], turn_id, occurred_at=f"2026-03-01T09:0{minute}:00Z")
    await pipeline.topics.settled()


async def intention(pipeline: InMemoryPipeline, project: str = "default", user: str = "u1") -> dict[str, list[str]]:
    result = (await pipeline.command("get_intention", user, project))["result"]
    return {part: [entry["text"] for entry in result[part]] for part in PARTS if result[part]}


async def forget(pipeline: InMemoryPipeline, **what: Any) -> None:
    """Forget and wait only for the reply."""
    message = command_message("forget") | {"arguments": what}
    assert (await pipeline.ask(pipeline.names.commands, message))["status"] == "ok"


def stored(pipeline: InMemoryPipeline) -> str:
    here = partition_of(b"u1", pipeline.partitions)
    return pipeline.intentions.get(here, {"user_id": "u1", "project_id": "default"}).model_dump_json()


def running(directory: Path, profiles: Profiles | None = None) -> Any:
    return InMemoryPipeline(directory / "data", profiles=profiles or Profiles()).running()


async def test_intention_follows_the_turns(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await remember_story(pipeline, "t-1", "t-2", "t-3")
        rules = {
            "constraints": ["The API must answer within 200 ms."],
            "decisions": ["We decided to use PostgreSQL for the ledger."],
        }
        goal, error = [STORY["t-1"]], [STORY["t-3"]]
        assert await intention(pipeline) == {"goals": goal, "blocking_errors": error, **rules}
        await remember_story(pipeline, "t-4")
        assert await intention(pipeline) == {"goals": goal, **rules}
        await remember_story(pipeline, "t-5")
        assert await intention(pipeline) == rules


async def test_same_turns_again_change_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await remember_story(pipeline)
        before = await pipeline.command("get_intention")
        await remember_story(pipeline)
        assert await pipeline.command("get_intention") == before


async def test_entries_of_a_forgotten_turn_leave_reply_and_table(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await remember_story(pipeline, "t-1", "t-2")
        await forget(pipeline, turn_id="t-2", conversation_id="c1")
        assert await intention(pipeline) == {"goals": [STORY["t-1"]]}
        await pipeline.topics.settled()
        assert "PostgreSQL" not in stored(pipeline)


async def test_goal_reopens_when_its_resolving_turn_is_forgotten(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await remember_story(pipeline, "t-1", "t-5")
        assert await intention(pipeline) == {}
        await forget(pipeline, turn_id="t-5", conversation_id="c1")
        assert await intention(pipeline) == {"goals": [STORY["t-1"]]}


async def test_edited_turn_counts_as_it_is_now(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await remember_story(pipeline, "t-1")
        await pipeline.remember("We want to learn sailing.", "t-1", occurred_at="2026-03-01T09:01:00Z")
        await pipeline.topics.settled()
        assert await intention(pipeline) == {"goals": ["We want to learn sailing."]}


async def test_forgetting_a_project_removes_its_intention(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await remember_story(pipeline, "t-1", "t-2")
        for project in ("default", "p2"):
            await pipeline.command("set_intention", project=project, goals=["learn to row"], constraints=["no debts"])
        await forget(pipeline, project=True)
        assert await intention(pipeline) == {}
        assert await intention(pipeline, "p2") == {"goals": ["learn to row"], "constraints": ["no debts"]}
        await pipeline.topics.settled()
        before = stored(pipeline)
        assert not any(text in before for text in ("learn", "debts", "beta", "PostgreSQL"))


async def test_forgetting_a_user_removes_all_intentions(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        for project in ("default", "p2"):
            await pipeline.command("set_intention", project=project, goals=["learn to row"])
        await forget(pipeline, user=True)
        assert [await intention(pipeline, project) for project in ("default", "p2")] == [{}, {}]


async def test_intention_belongs_to_its_scope(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await remember_story(pipeline)
        assert [await intention(pipeline, "p2"), await intention(pipeline, user="u2")] == [{}, {}]


async def test_entries_of_a_language_model_are_added(tmp_path: Path) -> None:
    async with running(tmp_path, ONE_PROFILE) as pipeline:
        pipeline.language.answers = lambda _prompt: {"intention": {"goals": ["Move house by June"]}}
        await pipeline.remember("Boxes everywhere.", "t-1")
        await pipeline.topics.settled()
        await pipeline.until(lambda: pipeline.memory("Boxes everywhere.").reading.status == "model")
        await pipeline.topics.settled()
        shown = (await pipeline.command("get_intention"))["result"]
        assert [(entry["text"], entry["source"]) for entry in shown["goals"]] == [("Move house by June", "model")]
        assert json.dumps(shown["goals"]).count(pipeline.memory("Boxes everywhere.").memory_id) == 1


async def test_unwritten_set_command_is_repeated_after_a_kill(tmp_path: Path) -> None:
    pipeline = InMemoryPipeline(tmp_path / "data")
    ours = (("reply_to", pipeline.names.replies.encode()), ("correlation_id", b"mine"))
    wish = command_message("set_intention", goals=["learn to row"])
    # No changelog takes a row in this life.
    pipeline.tables._room = asyncio.Event().wait  # type: ignore[assignment]
    async with pipeline.running():
        await pipeline.publish(pipeline.names.commands, wish, headers=ours)
        await pipeline.until(lambda: len(pipeline.replies(b"mine")) == 1)
    async with pipeline.running():
        await pipeline.until(lambda: len(pipeline.replies(b"mine")) == 2)
        assert await intention(pipeline) == {"goals": ["learn to row"]}


async def test_intention_of_the_whole_user_stands_above_those_of_projects(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await pipeline.command("set_intention", project="*", goals=["finish the thesis"])
        await pipeline.command("set_intention", project="p1", goals=["ship the beta"])
        shown = (await pipeline.command("get_intention", project="p1"))["result"]
        assert [goal["text"] for goal in shown["goals"]] == ["ship the beta"]
        assert [goal["text"] for goal in shown["whole_user"]["goals"]] == ["finish the thesis"]


async def test_intention_of_the_whole_user_has_nothing_above_it(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await pipeline.command("set_intention", project="*", goals=["finish the thesis"])
        shown = (await pipeline.command("get_intention", project="*"))["result"]
        assert [goal["text"] for goal in shown["goals"]] == ["finish the thesis"]
        assert "whole_user" not in shown


async def test_no_other_command_takes_any_project(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        refused = await pipeline.command("declare_category", project="*", name="health")
        assert refused["error"]["code"] == "invalid_value"
        assert refused["error"]["field"] == "scope.project_id"


async def test_search_finds_the_intention_of_the_whole_user_in_a_project(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await pipeline.command("set_intention", project="*", goals=["finish the thesis about lichens"])
        found = await pipeline.retrieve("what is my goal with the thesis about lichens?", depth="auto")
        [goal] = found["result"]["intention"]["goals"]
        assert goal["scope"]["project_id"] == "*"


async def test_forgetting_a_user_removes_the_intention_of_the_whole_user(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await pipeline.command("set_intention", project="*", goals=["finish the thesis"])
        await forget(pipeline, user=True)
        assert await intention(pipeline, "*") == {}


async def test_context_shows_the_intention_of_the_whole_user_as_such(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await pipeline.command("set_intention", project="*", goals=["finish the thesis"], constraints=["metric units"])
        body = await context_body(pipeline)
        assert body["intention"] == {"goals": ["finish the thesis"], "constraints": ["metric units"]}


async def test_intention_takes_an_eighth_of_a_budget_at_most(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await pipeline.command("set_intention", project="*", goals=["finish the thesis", "x" * 500])
        assert (await context_body(pipeline))["intention"] == {"goals": ["finish the thesis"]}


async def test_context_with_filters_has_no_intention(tmp_path: Path) -> None:
    async with running(tmp_path) as pipeline:
        await pipeline.command("set_intention", project="*", goals=["finish the thesis"])
        assert "intention" not in await context_body(pipeline, filters={"speaker": "Ana"})


@pytest.mark.parametrize("has_grant", [True, False])
async def test_intention_of_the_whole_user_needs_a_grant_for_all_projects(tmp_path: Path, *, has_grant: bool) -> None:
    grants = {"all": [{"user_id": "u1"}], "one": [{"user_id": "u1", "project_id": "p1"}]}
    admit = Admit(PolicyFile(Policy.model_validate({"principals": grants})))
    async with InMemoryPipeline(tmp_path / "data", admit=admit).running() as pipeline:
        message = command_message("set_intention", project="*") | {"arguments": {"goals": ["finish the thesis"]}}
        headers = (("principal", b"all" if has_grant else b"one"),)
        assert ((await pipeline.ask(pipeline.names.commands, message, headers))["status"] == "ok") is has_grant


async def context_body(pipeline: InMemoryPipeline, **fields: Any) -> dict[str, Any]:
    """Return the JSON object of an assembled context."""
    request = {"schema": "assemble.v1", "scope": {"user_id": "u1"}, "query": "what next?", "budget_tokens": 500}
    reply = await pipeline.ask(pipeline.names.retrieve, {**request, **fields})
    content = reply["result"]["messages"][1]["content"]
    return dict(json.loads(content[content.index("{") :]))
