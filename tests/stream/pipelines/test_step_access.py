"""What custom steps may do beside returning their part: search, write, be tried again; and what they may not."""

import asyncio
from pathlib import Path

import pytest

from agents.commands.admit import Admit
from schemas.state.policies import Policy
from streams.adapters.policy_file import PolicyFile
from tests.builders import custom_steps
from tests.stream.pipelines.test_custom_steps import said, stored
from tests.stream.pipelines.test_editing import edit, insert
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import turn_message

INGEST = "memorize.ingest"


async def test_step_finds_memories_of_its_user_and_project_alone(pipeline: InMemoryPipeline) -> None:
    await said(pipeline, "The lantern is red.", "t1")
    await said(pipeline, "A lantern elsewhere.", "t2", scope={"user_id": "u1", "project_id": "other"})
    await said(pipeline, "The lantern of another user.", "t3", scope={"user_id": "u2"})
    await edit(pipeline, insert("memorize.search", INGEST, "Searches"))
    await said(pipeline, "Where is my lantern?", "t4")
    assert pipeline.memory("Where is my lantern?").metadata["found"] == [1]


@pytest.mark.parametrize("config", [{"times": 4}, {"top_k": 21}])
async def test_search_beyond_the_bounds_is_a_failure_of_the_step(
    pipeline: InMemoryPipeline, config: dict[str, int]
) -> None:
    await edit(pipeline, insert("memorize.search", INGEST, "Searches", **config))
    assert (await said(pipeline, "Where is my lantern?"))["error"]["code"] == "internal"


async def test_step_of_a_question_may_search_and_its_search_runs_no_step(pipeline: InMemoryPipeline) -> None:
    for number, text in enumerate(("The lantern is red.", "A lantern was sold yesterday.")):
        await said(pipeline, text, f"t{number}")
    plain = await pipeline.texts("lantern red")
    await edit(pipeline, insert("retrieve.search", "retrieve.rank", "SearchesHits"))
    assert await pipeline.texts("lantern red") == plain[::-1]


async def test_step_writes_a_turn_once_and_none_because_of_its_own(pipeline: InMemoryPipeline) -> None:
    await edit(pipeline, insert("memorize.echo", INGEST, "Echoes"))
    await said(pipeline, "Hello.")
    await said(pipeline, "Hello.")
    await pipeline.topics.settled()
    assert stored(pipeline) == ["Echo: Hello.", "Hello."]
    assert pipeline.memory("Echo: Hello.").metadata == {"made_by": "memorize.echo"}


async def test_what_is_written_because_of_a_private_turn_is_private(pipeline: InMemoryPipeline) -> None:
    await edit(pipeline, insert("memorize.echo", INGEST, "Echoes"))
    await said(pipeline, "My PIN is 7.", private=True)
    await pipeline.topics.settled()
    assert pipeline.memory("Echo: My PIN is 7.").visibility.private


async def test_writing_step_needs_a_grant_where_the_deployment_has_a_policy(tmp_path: Path) -> None:
    grants = {"writer": [{"user_id": "*"}], "operator": [{"user_id": "*", "may": ["operate"]}]}
    policy = PolicyFile(Policy.model_validate({"principals": grants}))
    world = InMemoryPipeline(tmp_path, admit=Admit(policy))
    async with world.running():
        await edit(world, insert("memorize.echo", INGEST, "Echoes"))
        await world.publish(world.names.turns, turn_message("Hello.", "t1"), headers=(("principal", b"writer"),))
        await world.topics.settled()
        assert stored(world) == ["Hello."]


async def test_no_step_writes_because_of_a_question(pipeline: InMemoryPipeline) -> None:
    error = (await edit(pipeline, insert("retrieve.writes", "retrieve.rank", "Writes")))["error"]
    assert error["message"].startswith("rule capability_unavailable: ")
    assert "a question changes nothing" in error["message"]


async def test_failed_attempt_is_repeated_as_often_as_the_settings_say(pipeline: InMemoryPipeline) -> None:
    custom_steps.FailsOnce.calls = 0
    await edit(pipeline, insert("memorize.fails", INGEST, "FailsOnce", retries=1))
    assert (await said(pipeline, "Hello."))["status"] == "ok"
    assert custom_steps.FailsOnce.calls == 2


async def test_calls_at_a_time_are_bounded(pipeline: InMemoryPipeline) -> None:
    custom_steps.CountsItself.most = 0
    await edit(pipeline, insert("memorize.counts", INGEST, "CountsItself", concurrency=2))
    await asyncio.gather(*(said(pipeline, f"Hello {number}.", f"t{number}") for number in range(6)))
    assert custom_steps.CountsItself.most <= 2
