"""`change-model` over the pipeline: for several users, awaited, rolled back, dropped."""

from typing import Any

import pytest
from modestream_client import MemoryServiceError

from operations.change_model import ChangeModel, ModelChange
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.mode_commands import count_vectors

USERS = ("u1", "u2")


def changing(pipeline: InMemoryPipeline, embedder: str | None, **options: Any) -> ChangeModel:
    async def call(command: str, scope: dict[str, str], arguments: dict[str, Any]) -> Any:
        reply = await pipeline.command(command, scope["user_id"], **arguments)
        if reply["status"] == "error":
            raise MemoryServiceError(reply["error"]["code"], reply["error"]["message"])
        return reply["result"]

    return ChangeModel(call, ModelChange("general", embedder, poll_interval_s=0.01, **options))


def scope_of(user: str) -> dict[str, str]:
    return {"user_id": user, "project_id": "default"}


async def test_model_of_all_users_is_changed_rolled_back_and_dropped(pipeline: InMemoryPipeline) -> None:
    for user in USERS:
        for number in range(3):
            await pipeline.remember(f"Crate {number} is in the hall.", user=user)
    await pipeline.topics.settled()
    finished = [await changing(pipeline, "tiny48")(scope_of(user)) for user in USERS]
    assert [job.processed for job in finished] == [3, 3]
    assert await count_vectors(pipeline) == {"general/all-MiniLM-L6-v2": 6, "general/tiny48": 6}
    requests = len(pipeline.topics.records(pipeline.names.remembered))
    await changing(pipeline, "general")(scope_of("u1"))
    assert len(pipeline.topics.records(pipeline.names.remembered)) == requests, "nothing is embedded again"
    await changing(pipeline, None)(scope_of("u1"))
    await pipeline.topics.settled()
    assert await count_vectors(pipeline) == {"general/all-MiniLM-L6-v2": 6, "general/tiny48": 3}


async def test_user_without_the_mode_is_skipped(pipeline: InMemoryPipeline) -> None:
    change = changing(pipeline, "tiny48", project="p1")
    assert (await change({"user_id": "u1", "project_id": "p1"})).skipped == 1


async def test_user_whose_vectors_take_too_long_is_told(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("Crate 1 is in the hall.")
    await pipeline.topics.settled()
    pipeline.embedders.missing("tiny48")
    with pytest.raises(MemoryServiceError, match="1 vectors are missing"):
        await changing(pipeline, "tiny48", user_timeout_s=0.05)(scope_of("u1"))


async def test_user_whose_mode_has_the_embedder_by_any_of_its_names_is_not_changed(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("Crate 1 is in the hall.")
    await pipeline.topics.settled()
    for name in ("general", "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"):
        change = changing(pipeline, name)
        assert (await change(scope_of("u1"))).processed == 1
        assert change.unchanged == 1, name
    for embedder, unchanged in (("tiny48", 0), (None, 0), (None, 1)):
        change = changing(pipeline, embedder)
        await change(scope_of("u1"))
        assert change.unchanged == unchanged, embedder
