"""Commands that only read go to the topic of questions, whose records are removed after a day."""

from collections.abc import Awaitable, Callable

import pytest
from modestream_client.operations import QUERY_COMMANDS, READING_COMMANDS

from gateway.readiness import readiness_of
from schemas.state.policies import OPERATOR
from tests.harnesses.mcp import answer, in_process
from tests.worlds.gateway import http_over
from tests.worlds.in_memory_client import InMemoryTransport, client_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import command_message

USER = "/v1/users/u1"


async def by_client(pipeline: InMemoryPipeline) -> None:
    memory = client_of(pipeline)
    await memory.list_modes()
    await memory.suggest_modes()
    await memory.suggest_categories()
    await memory.list_categories(include_summary=True)
    await memory.get_intention()
    await memory.health()


async def by_http(pipeline: InMemoryPipeline) -> None:
    async with http_over(InMemoryTransport(pipeline)) as http:
        for path in ("modes", "mode-suggestions", "categories", "category-suggestions", "intention", "health"):
            (await http.get(f"{USER}/{path}")).raise_for_status()


async def by_mcp(pipeline: InMemoryPipeline) -> None:
    async with in_process(InMemoryTransport(pipeline)) as session:
        await answer(session, "list_modes")


async def by_readiness(pipeline: InMemoryPipeline) -> None:
    assert await readiness_of(InMemoryTransport(pipeline))()


async def by_operator(pipeline: InMemoryPipeline) -> None:
    async with http_over(InMemoryTransport(pipeline)) as http:
        (await http.get("/v1/pipelines")).raise_for_status()


@pytest.mark.parametrize("read", [by_client, by_http, by_mcp, by_readiness, by_operator])
async def test_reading_leaves_nothing_in_the_commands(
    pipeline: InMemoryPipeline, read: Callable[[InMemoryPipeline], Awaitable[None]]
) -> None:
    await read(pipeline)
    assert pipeline.topics.records(pipeline.names.commands) == []


NOTHING_THERE = ("get_job", "get_context", "get_file", "get_file_parts")
"""Commands of which the test names nothing that is there."""


@pytest.mark.parametrize("command", sorted(QUERY_COMMANDS - {"list_runs"}))
async def test_both_topics_answer_alike(pipeline: InMemoryPipeline, command: str) -> None:
    said = await client_of(pipeline).remember("The kettle is blue.", mode="general")
    await client_of(pipeline).declare_category("kitchen")
    arguments = {"memory_id": said.memory_id, "name": "kitchen", "job_id": "backfill-1-1", "pipeline": "memorize"}
    message = command_message(command, "u1", "default", **arguments)
    headers = (("principal", OPERATOR.encode()),)
    kept = await pipeline.ask(pipeline.names.commands, message, headers)
    asked = await pipeline.ask(pipeline.names.retrieve, message, headers)
    assert asked["status"] == ("error" if command in NOTHING_THERE else "ok")
    assert asked.get("error") == kept.get("error")
    assert sorted(asked.get("result", {})) == sorted(kept.get("result", {}))


@pytest.mark.parametrize("command", ["declare_mode", "forget", "set_intention", "no_such_command"])
async def test_what_changes_something_is_refused_there(pipeline: InMemoryPipeline, command: str) -> None:
    message = command_message(command, name="diary", embedder="general", goals=["x"])
    reply = await pipeline.ask(pipeline.names.retrieve, message)
    assert reply["error"]["code"] == "unknown_command"
    assert "list_modes" in reply["error"]["message"]


async def test_what_a_command_changed_is_seen(pipeline: InMemoryPipeline) -> None:
    memory = client_of(pipeline)
    for name in ("diary", "plans", "code"):
        await memory.declare_mode(name, "general")
        assert name in {mode.name for mode in (await memory.list_modes()).modes}
    memory_id = str((await memory.remember("The kettle is blue.", mode="diary")).memory_id)
    assert (await memory.get_memory(memory_id)).mode == "diary"
    await memory.set_memory_mode(memory_id, "plans")
    assert (await memory.get_memory(memory_id)).mode == "plans"


async def test_a_job_whose_command_is_not_read_yet_runs(pipeline: InMemoryPipeline) -> None:
    await client_of(pipeline).remember("The kettle is blue.")
    async with http_over(InMemoryTransport(pipeline)) as http:
        begun = await http.post(f"{USER}/jobs/backfill", headers={"Prefer": "respond-async"})
        assert begun.status_code == 202
        answered = await http.get(begun.headers["location"])
    assert answered.status_code in (200, 202)


def test_reading_commands_need_no_other_permission() -> None:
    assert READING_COMMANDS < QUERY_COMMANDS
    assert not any(name.startswith(("declare", "set", "delete", "rename", "forget", "edit")) for name in QUERY_COMMANDS)
