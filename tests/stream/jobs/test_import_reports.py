"""Imports run beside the worker, which is told how far they are: any gateway can be asked, also after a restart."""

from typing import Any

from tests.worlds.in_memory_pipeline import InMemoryPipeline

Json = dict[str, Any]

JOB = f"import-{'a1' * 16}"


async def report(pipeline: InMemoryPipeline, read: int, user: str = "u1", **end: Any) -> Json:
    counts: Json = {"read": read, "stored": read, "duplicate": 0, "refused": 0}
    return await pipeline.command("report_import", user, job_id=JOB, **counts, **end)


async def state(pipeline: InMemoryPipeline, user: str = "u1") -> Json:
    reply = await pipeline.command("get_job", user, job_id=JOB)
    return dict(reply.get("result") or reply["error"])


async def test_an_import_that_was_reported_runs_with_its_counts(pipeline: InMemoryPipeline) -> None:
    await report(pipeline, 3)
    found = await state(pipeline)
    assert found["state"] == "running"
    assert found["progress"]["read"] == 3


async def test_an_import_that_has_ended_has_its_result(pipeline: InMemoryPipeline) -> None:
    await report(pipeline, 3)
    await report(pipeline, 4, result={"read": 4, "problems": []})
    assert (await state(pipeline))["result"] == {"read": 4, "problems": []}


async def test_an_import_that_failed_has_its_error(pipeline: InMemoryPipeline) -> None:
    await report(pipeline, 3, error={"code": "unavailable", "message": "away"})
    assert (await state(pipeline))["error"]["code"] == "unavailable"


async def test_a_late_report_takes_nothing_back(pipeline: InMemoryPipeline) -> None:
    await report(pipeline, 9)
    await report(pipeline, 3)
    assert (await state(pipeline))["progress"]["read"] == 9


async def test_what_has_ended_does_not_run_again(pipeline: InMemoryPipeline) -> None:
    await report(pipeline, 4, result={"read": 4})
    await report(pipeline, 9)
    assert (await state(pipeline))["state"] == "done"


async def test_another_user_has_no_such_job(pipeline: InMemoryPipeline) -> None:
    await report(pipeline, 3)
    assert (await state(pipeline, "u2"))["code"] == "not_found"


async def test_an_id_of_another_kind_is_refused(pipeline: InMemoryPipeline) -> None:
    reply = await pipeline.command("report_import", job_id="backfill-0-1", read=0, stored=0, duplicate=0, refused=0)
    assert reply["error"]["field"] == "arguments.job_id"
