"""Commands on pipelines over the topics: revisions, rollback, two editors, and permissions."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.commands.admit import Admit
from agents.rules.pipelines.built_in import DEFAULT_TOPOLOGY
from schemas.state.pipelines import Revision
from schemas.state.policies import Policy
from streams.adapters.policy_file import PolicyFile
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, command_message

STEPS = "tests.builders.custom_steps"


def insert(name: str, at: str, cls: str, **config: Any) -> Json:
    return {"op": "insert_after", "at": at, "step_id": name, "implementation": f"{STEPS}.{cls}", "config": config}


REDACT = insert("memorize.redact", "memorize.ingest", "RedactCards")
CANDIDATES = {"op": "config", "step_id": "retrieve.rerank", "config": {"candidates": 5}}


async def edit(pipeline: InMemoryPipeline, *edits: Json, **arguments: Any) -> Json:
    return await pipeline.command("edit_pipeline", edits=[*edits], **arguments)


def step_of(reply: Json, step_id: str) -> Json:
    steps = reply["result"]["pipelines"][step_id.split(".", maxsplit=1)[0]]
    [found] = [step for step in steps if step["step_id"] == step_id]
    return dict(found)


async def test_accepted_edit_is_a_revision_and_a_rollback_another(pipeline: InMemoryPipeline) -> None:
    shipped = await pipeline.command("get_pipeline")
    assert shipped["result"]["revision"] == 0
    first = await edit(pipeline, REDACT, CANDIDATES, note="no cards")
    assert first["result"]["revision"] == 1
    assert first["result"]["note"] == "no cards"
    assert step_of(first, "memorize.redact")["produces"] == ["turn"]
    back = await pipeline.command("rollback_pipeline", revision=0)
    assert back["result"]["revision"] == 2
    assert back["result"]["restores"] == 0
    assert back["result"]["pipelines"] == shipped["result"]["pipelines"]
    again = await pipeline.command("rollback_pipeline", revision=1)
    assert again["result"]["hash"] == first["result"]["hash"]
    listed = (await pipeline.command("list_revisions"))["result"]
    assert listed["current"] == 3
    assert [revision["number"] for revision in listed["revisions"]] == [3, 2, 1, 0]
    assert (await pipeline.command("get_pipeline", revision=1))["result"]["pipelines"] == first["result"]["pipelines"]


async def test_refused_edit_names_its_rule_and_changes_nothing(pipeline: InMemoryPipeline) -> None:
    refused = await edit(pipeline, CANDIDATES, {"op": "remove", "step_id": "memorize.index"})
    assert refused["error"]["code"] == "invalid_value"
    assert refused["error"]["message"].startswith("rule step_is_fixed: ")
    assert (await pipeline.command("get_pipeline"))["result"]["revision"] == 0
    assert pipeline.pipeline_log.records == []
    unknown = await edit(pipeline, {"op": "config", "step_id": "retrieve.rerank", "settings": {}})
    assert unknown["error"]["field"].startswith("arguments.edits")


async def test_dry_run_and_an_edit_without_effect_make_no_revision(pipeline: InMemoryPipeline) -> None:
    draft = await edit(pipeline, REDACT, dry_run=True)
    assert draft["result"]["dry_run"] is True
    assert draft["result"]["revision"] == 0
    assert step_of(draft, "memorize.redact")["implementation"] == f"{STEPS}.RedactCards"
    same = await edit(pipeline, {"op": "config", "step_id": "retrieve.rerank", "enabled": True})
    assert same["result"]["revision"] == 0
    assert pipeline.pipeline_log.records == []


async def test_expected_revision_protects_from_an_edit_in_between(pipeline: InMemoryPipeline) -> None:
    await edit(pipeline, CANDIDATES)
    late = await edit(pipeline, REDACT, expected_revision=0)
    assert late["error"]["code"] == "conflict"
    assert (await edit(pipeline, REDACT, expected_revision=1))["result"]["revision"] == 2


async def test_edit_of_another_worker_comes_first_and_both_count(pipeline: InMemoryPipeline) -> None:
    other = DEFAULT_TOPOLOGY.with_steps("evolve", [step.model_copy(update={"enabled": step.step_id != "evolve.merge"})
                                                   for step in DEFAULT_TOPOLOGY.evolve])  # fmt: skip
    pipeline.pipeline_log.before_write = [
        Revision(
            number=1, parent=0, hash=other.digest, created_at=pipeline.clock.now(), request="other", topology=other
        )
    ]
    reply = await edit(pipeline, CANDIDATES)
    assert reply["result"]["revision"] == 2
    assert not step_of(reply, "evolve.merge")["enabled"]
    assert step_of(reply, "retrieve.rerank")["config"] == {"candidates": 5}


async def test_command_that_is_delivered_twice_makes_one_revision(tmp_path: Path) -> None:
    world = InMemoryPipeline(tmp_path)
    async with world.running():
        await edit(world, CANDIDATES)
    world.topics.forget_acknowledged(1, {world.names.commands})
    async with world.running():
        await world.topics.settled()
    assert len(world.pipeline_log.records) == 1
    answers = [json.loads(record.value or b"") for record in world.topics.records(world.names.replies)]
    assert [answer["result"]["revision"] for answer in answers] == [1, 1]


async def test_revision_outlives_the_worker(tmp_path: Path) -> None:
    world = InMemoryPipeline(tmp_path)
    async with world.running():
        await edit(world, REDACT)
    async with world.running():
        assert (await world.command("get_pipeline"))["result"]["revision"] == 1
        await world.remember("My card is 4111 1111 1111 1111.")
        assert await world.texts("card") == ["My card is [card]."]


@pytest.mark.parametrize(
    ("principal", "code"), [("operator", None), ("manager", "not_allowed"), ("one_user", "not_allowed")]
)
async def test_only_operators_of_all_users_may_edit(tmp_path: Path, principal: str, code: str | None) -> None:
    grants = {
        "operator": [{"user_id": "*", "may": ["operate"]}],
        "manager": [{"user_id": "*"}],
        "one_user": [{"user_id": "u1", "may": ["operate"]}],
    }
    world = InMemoryPipeline(tmp_path, admit=Admit(PolicyFile(Policy.model_validate({"principals": grants}))))
    async with world.running() as pipeline:
        headers = (("principal", principal.encode()),)
        message = command_message("edit_pipeline", edits=[CANDIDATES])
        reply = await pipeline.ask(pipeline.names.commands, message, headers)
        assert reply.get("error", {}).get("code") == code
        if code is None:
            assert reply["result"]["author"] == principal


async def test_profile_and_settings_of_a_step_count_at_once(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE).running() as pipeline:
        for number in range(3):
            await pipeline.remember(f"The lantern number {number} is in the hall.")
        await pipeline.topics.settled()
        pipeline.language.answers = lambda _: {"order": [{"number": 1}]}
        await edit(pipeline, {"op": "config", "step_id": "retrieve.rerank", "config": {"by_default": True}})
        reply = await pipeline.retrieve("where is the lantern?", explain=True)
        assert reply["result"]["diagnostics"]["reranked_by"] == "default"
        await edit(pipeline, {"op": "remove", "step_id": "retrieve.rerank"})
        reply = await pipeline.retrieve("where is the lantern?", explain=True, rerank=True)
        assert "reranked_by" not in reply["result"]["diagnostics"]
