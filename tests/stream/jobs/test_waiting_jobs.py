"""Jobs that wait: users in turn, and the same job asked for several times is one."""

import asyncio
import json
from typing import Any

import pytest

from schemas.messages.records import Record
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import command_message
from tests.worlds.in_memory_topics import LONGEST_WAIT_SECONDS
from tests.worlds.mode_commands import remember_turn

JOBS, MANY_JOBS = 6, 100


async def rebuilds_that_wait(pipeline: InMemoryPipeline, jobs: int = JOBS) -> list[Record]:
    """Ask for the same rebuild several times; the first of them wait for the vector index."""
    await remember_turn(pipeline, "The cat sleeps.")
    pipeline.clock.forward(1)
    pipeline.index.down()
    asked = []
    for _ in range(jobs):
        asked.append(await pipeline.publish(pipeline.names.commands, command_message("rebuild")))
        pipeline.clock.forward(1)
    await pipeline.until_waiting_for("vector index")
    return asked


async def answer(pipeline: InMemoryPipeline, asked: Record) -> dict[str, Any]:
    async with asyncio.timeout(LONGEST_WAIT_SECONDS):
        while True:
            job_id = f"rebuild-{asked.partition}-{asked.offset}"
            reply = await pipeline.command("get_job", job_id=job_id)
            if reply["result"]["state"] != "running":
                return dict(reply["result"]["result"])
            await asyncio.sleep(0.01)


async def test_same_job_waiting_several_times_is_one_with_an_answer_for_each(pipeline: InMemoryPipeline) -> None:
    asked = await rebuilds_that_wait(pipeline)
    pipeline.index.up()
    answers = [await answer(pipeline, job_id) for job_id in asked]
    assert [answer.pop("job_id") for answer in answers] == [
        f"rebuild-{record.partition}-{record.offset}" for record in asked
    ]
    assert all(answer["processed"] == 1 for answer in answers)
    events = [json.loads(record.value or b"") for record in pipeline.topics.records(pipeline.names.embedded)]
    # Two of a user run at once; all the others are the third.
    assert sum(event["status"] == "again" for event in events) <= 3


@pytest.mark.parametrize("jobs", [JOBS, MANY_JOBS])
async def test_jobs_of_one_user_leave_a_turn_to_another(pipeline: InMemoryPipeline, jobs: int) -> None:
    await rebuilds_that_wait(pipeline, jobs)
    async with asyncio.timeout(LONGEST_WAIT_SECONDS):
        # Nothing of this user is in the index, which does not answer.
        reply = await pipeline.command("backfill", "u2")
    pipeline.index.up()
    assert reply["status"] == "ok"
