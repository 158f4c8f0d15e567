"""The answer of a job is kept, and `get_job` has it: while it runs, when it is done, and after a restart."""

import asyncio
from pathlib import Path
from typing import Any

from schemas.messages.records import Record
from streams.wire.partitioning import partition_of
from tests.worlds.consolidation import remember_many
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import command_message
from tests.worlds.in_memory_topics import LONGEST_WAIT_SECONDS
from tests.worlds.mode_commands import declare, remember_turn

Json = dict[str, Any]

TRIGGER: Json = {"schema": "consolidate.v1", "scope": {"user_id": "u1"}, "mode": None}


def id_of(kind: str, record: Record) -> str:
    return f"{kind}-{record.partition}-{record.offset}"


async def state(pipeline: InMemoryPipeline, job_id: str, user: str = "u1") -> Json:
    reply = await pipeline.command("get_job", user, job_id=job_id)
    return dict(reply.get("result") or reply["error"])


async def ended(pipeline: InMemoryPipeline, job_id: str) -> Json:
    async with asyncio.timeout(LONGEST_WAIT_SECONDS):
        while (found := await state(pipeline, job_id)).get("state") == "running":
            await asyncio.sleep(0.01)
    return found


async def test_a_job_runs_and_then_has_the_result_of_the_run(pipeline: InMemoryPipeline) -> None:
    await remember_turn(pipeline, "The cat sleeps.")
    pipeline.clock.forward(1)
    pipeline.index.down()
    job_id = id_of("rebuild", await pipeline.publish(pipeline.names.commands, command_message("rebuild")))
    running: Json = {"job_id": job_id, "state": "running", "result": None, "error": None, "warnings": []}
    assert await state(pipeline, job_id) == running
    pipeline.index.up()
    found = await ended(pipeline, job_id)
    assert found["state"] == "done"
    assert found["error"] is None
    assert found["result"]["job_id"] == job_id
    assert found["result"]["processed"] == 1


async def test_an_answered_job_and_its_stored_answer_are_the_same(pipeline: InMemoryPipeline) -> None:
    await remember_turn(pipeline, "The cat sleeps.")
    answered = (await pipeline.command("reconcile"))["result"]
    assert (await ended(pipeline, answered["job_id"]))["result"] == answered


async def test_a_consolidation_has_an_id_of_its_trigger(pipeline: InMemoryPipeline) -> None:
    await remember_many(pipeline, 5)
    reply = await pipeline.ask(pipeline.names.consolidate, TRIGGER)
    [record] = pipeline.topics.records(pipeline.names.consolidate)
    found = await ended(pipeline, id_of("consolidate", record))
    assert found["state"] == "done"
    assert found["result"] == reply["result"]
    assert found["warnings"] == reply["warnings"]


async def test_a_refused_job_has_the_error_of_the_run(pipeline: InMemoryPipeline) -> None:
    record = await pipeline.publish(pipeline.names.commands, command_message("backfill", mode="nothing"))
    found = await ended(pipeline, id_of("backfill", record))
    assert found["state"] == "failed"
    assert found["result"] is None
    assert found["error"]["code"] == "unknown_mode"
    assert found["error"]["field"] == "arguments.mode"


async def test_a_refused_consolidation_has_the_error_of_the_run(pipeline: InMemoryPipeline) -> None:
    record = await pipeline.publish(pipeline.names.consolidate, {**TRIGGER, "mode": "nothing"})
    await pipeline.topics.settled()
    found = await ended(pipeline, id_of("consolidate", record))
    assert found["state"] == "failed"
    assert found["error"]["code"] == "unknown_mode"


async def test_unknown_jobs_and_those_of_other_users_are_not_found(pipeline: InMemoryPipeline) -> None:
    job_id = (await pipeline.command("backfill"))["result"]["job_id"]
    for found in (await state(pipeline, job_id, "u2"), await state(pipeline, "backfill-0-999")):
        assert found["code"] == "not_found"
        assert found["field"] == "arguments.job_id"
    assert (await pipeline.command("get_job"))["error"]["field"] == "arguments.job_id"


async def test_a_killed_job_is_running_until_its_redelivery_ends(tmp_path: Path) -> None:
    world = InMemoryPipeline(tmp_path)
    async with world.running() as pipeline:
        await remember_turn(pipeline, "The cat sleeps.")
        pipeline.clock.forward(1)
        pipeline.index.down()
        job_id = id_of("rebuild", await pipeline.publish(pipeline.names.commands, command_message("rebuild")))
        assert (await state(pipeline, job_id))["state"] == "running"
    async with world.running() as pipeline:
        assert (await state(pipeline, job_id))["state"] == "running"
        pipeline.index.up()
        assert (await ended(pipeline, job_id))["state"] == "done"


async def test_a_redelivered_command_keeps_the_answer_of_its_job(tmp_path: Path) -> None:
    world = InMemoryPipeline(tmp_path)
    async with world.running() as pipeline:
        await remember_turn(pipeline, "The cat sleeps.")
        job_id = (await pipeline.command("backfill"))["result"]["job_id"]
        done = await ended(pipeline, job_id)
        await pipeline.topics.settled()
    world.topics.forget_acknowledged(3, [world.names.commands])
    async with world.running() as pipeline:
        assert (await state(pipeline, job_id))["state"] == "done"
        await pipeline.topics.settled()
        assert (await ended(pipeline, job_id))["result"]["job_id"] == done["result"]["job_id"]


async def forget(pipeline: InMemoryPipeline, **arguments: Any) -> None:
    message = {**command_message("forget"), "arguments": arguments}
    assert (await pipeline.ask(pipeline.names.commands, message))["status"] == "ok"


async def consolidated(pipeline: InMemoryPipeline) -> str:
    """Consolidate, and return the id of the run; its answer has texts."""
    await remember_many(pipeline, 5)
    record = await pipeline.publish(pipeline.names.consolidate, TRIGGER)
    await pipeline.topics.settled()
    job_id = id_of("consolidate", record)
    assert any(change["after"] for change in (await ended(pipeline, job_id))["result"]["diff"])
    return job_id


async def test_forgetting_a_user_removes_the_answers_of_its_jobs(pipeline: InMemoryPipeline) -> None:
    job_id = await consolidated(pipeline)
    await forget(pipeline, user=True)
    assert (await state(pipeline, job_id))["code"] == "not_found"


async def test_job_that_outlasts_its_user_leaves_no_name_of_a_mode(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "therapy")
    await remember_turn(pipeline, "The cat sleeps.", mode="therapy")
    pipeline.clock.forward(1)
    pipeline.index.down()
    job = command_message("rebuild", mode="therapy")
    asking = asyncio.create_task(pipeline.ask(pipeline.names.commands, job))
    await pipeline.topics.until(lambda: bool(pipeline.topics.records(pipeline.names.jobs)))
    await forget(pipeline, user=True)
    pipeline.index.up()
    assert (await asking)["status"] == "ok"
    assert pipeline.jobs.last_backfill(partition_of(b"u1", pipeline.partitions), "u1") == {}


async def test_forgetting_a_memory_removes_the_texts_from_the_answers(pipeline: InMemoryPipeline) -> None:
    job_id = await consolidated(pipeline)
    await forget(pipeline, conversation_id="c1")
    found = await state(pipeline, job_id)
    assert found["state"] == "done"
    assert found["result"]["diff"]
    assert all(change.get("after") is None and change.get("before") is None for change in found["result"]["diff"])


async def test_a_job_says_when_a_mode_was_last_backfilled_beside_its_answer(pipeline: InMemoryPipeline) -> None:
    await declare(pipeline, "pets")
    job_id = (await pipeline.command("backfill"))["result"]["job_id"]
    health = (await pipeline.command("health"))["result"]
    assert health["modes"]["pets"]["last_backfill"] is not None
    assert (await state(pipeline, job_id))["state"] == "done"
