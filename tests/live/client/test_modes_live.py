"""Modes on a real broker: after their disk is lost, and before their model is there."""

import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from modestream_client import MemoryClient

from tests.worlds.live.flow import all_ready
from tests.worlds.live.processes import Deployment, eventually

Json = dict[str, Any]

USERS = ("u0", "u1", "u2")
"""In both partitions."""

PROJECTS = ("default", "p1")


@dataclass
class ModeUser:
    client: MemoryClient
    user_id: str

    async def command(self, name: str, project: str = "default", /, **arguments: Any) -> Json:
        return await self.client.command(name, arguments, user_id=self.user_id, project_id=project)

    async def say(self, text: str, mode: str | None = None, project: str = "default") -> str:
        """Remember a turn and return the memory's id."""
        remembered = await self.client.remember(
            text, turn_id=f"{project} {text}", mode=mode, user_id=self.user_id, project_id=project
        )
        assert remembered.memory_id is not None
        return remembered.memory_id

    async def settle_in(self) -> dict[str, str]:
        """Declare, rename, delete and correct modes; return the projects of the remaining memories by id."""
        await self.command("declare_mode", name="code", embedder="tiny32", description="programs", decay="fast")
        await self.command("declare_mode", name="journal", embedder="tiny48", is_default=True)
        await self.command("declare_mode", name="old", embedder="tiny48")
        await self.command("declare_mode", "p1", name="code", embedder="tiny48", for_project=True)
        await self.command("set_default_mode", "p1", name="code", for_project=True)
        await self.say("This is forgotten soon.", "old")
        ids = {await self.say(f"Crate {number} in the hall.", "code"): "default" for number in range(5)}
        ids |= {await self.say(f"Crate {number} in the yard.", project="p1"): "p1" for number in range(5)}
        ids |= {await self.say(f"A quiet day, the {number}th."): "default" for number in range(5)}
        await self.command("rename_mode", name="code", new_name="craft")
        await self.command("delete_mode", name="old", memories="forget")
        await self.command("set_memory_mode", memory_id=next(iter(ids)), mode="general")
        return ids

    async def ready(self) -> None:
        """Wait until every memory has a vector."""
        await eventually(partial(all_ready, self.client, self.user_id), f"{self.user_id} has all vectors")

    async def shown(self, ids: dict[str, str]) -> Json:
        """Return all that the service shows of these memories, without embedding times."""
        memories = {
            memory_id: await self.command("get_memory", project, memory_id=memory_id)
            for memory_id, project in ids.items()
        }
        for memory in memories.values():
            del memory["embedding"]["embedded_at"]
        health = await self.command("health")
        return {
            "modes": [await self.command("list_modes", project) for project in PROJECTS],
            "memories": memories,
            "health": health["modes"],
            "corrections": health["telemetry"]["corrections"],
        }

    async def found(self) -> Json:
        asked = [("craft", "default"), ("journal", "default"), ("general", "default"), ("code", "p1")]
        return {f"{mode} {project}": await self.search_mode(mode, project) for mode, project in asked}

    async def search_mode(self, mode: str, project: str) -> tuple[str, list[str]]:
        answer = await self.client.retrieve(
            "crate quiet day hall yard", users=self.user_id, projects=project, mode=mode, top_k=50
        )
        return answer.strategy, sorted(hit.text for hit in answer.hits)


async def test_empty_data_directory_recovers_modes_memories_and_vectors(with_embedders: Deployment) -> None:
    worker = await with_embedders.ready()
    async with with_embedders.client() as client:
        customers = [ModeUser(client, user_id) for user_id in USERS]
        ids = {customer.user_id: await customer.settle_in() for customer in customers}
        for customer in customers:
            await customer.ready()
        before = {
            customer.user_id: (await customer.shown(ids[customer.user_id]), await customer.found())
            for customer in customers
        }
        # The compared values are not empty.
        hall = [f"Crate {number} in the hall." for number in range(5)]
        assert before["u0"][1]["craft default"] == ("hybrid", hall[1:])
        assert before["u0"][1]["general default"] == ("hybrid", hall[:1])
        assert before["u0"][0]["health"]["code"]["ready"] == 5
        await worker.kill()
        shutil.rmtree(worker.data_dir)
        await with_embedders.ready()
        for customer in customers:
            listed = (await customer.command("list_modes"))["modes"]
            expected = before[customer.user_id][0]["modes"][0]["modes"]
            # Models are loaded anew.
            loaded = [mode["embedder_status"] for mode in expected]
            assert [mode | {"embedder_status": status} for mode, status in zip(listed, loaded, strict=True)] == expected
            await customer.ready()

        async def is_as_before() -> bool:
            # Requests are answered before the loss of the vectors is noticed and the models are loaded.
            after = {
                customer.user_id: (await customer.shown(ids[customer.user_id]), await customer.found())
                for customer in customers
            }
            return after == before

        await eventually(is_as_before, "everything is shown and found as before")
        again = await client.remember(
            "This is forgotten soon.", turn_id="default This is forgotten soon.", user_id="u0", mode="journal"
        )
        assert [warning.code for warning in again.warnings] == ["forgotten"]


@pytest.fixture
async def without_model(deployment: Deployment, tmp_path: Path) -> AsyncIterator[MemoryClient]:
    """A client of a worker whose embedder `late` has no files."""
    deployment.more["EMBEDDERS"] = json.dumps({"late": {"path": str(tmp_path / "late"), "dim": 48}})
    await deployment.ready()
    async with deployment.client() as client:
        yield client


async def test_mode_is_lexical_without_its_model_and_embedded_with_it(
    without_model: MemoryClient, tiny_models: Path, tmp_path: Path
) -> None:
    user = ModeUser(without_model, "u1")
    assert (await user.command("declare_mode", name="code", embedder="late"))["embedding_dim"] == 48
    texts = [f"Crate {number} in the hall." for number in range(5)]
    for text in texts:
        await user.say(text, "code")
    await user.say("Of another mode.")

    async def error() -> Json:
        return dict((await user.command("health"))["modes"]["code"]["error"] or {})

    async def is_missing() -> bool:
        status = await error()
        return status["code"] == "unavailable" and "being loaded" not in status["message"]

    await eventually(is_missing, "the model is known to be missing")
    health = (await user.command("health"))["modes"]
    assert health["code"]["eligible"] == 5
    assert health["code"]["pending"] == 5
    assert health["code"]["fingerprint"] is None
    assert (await user.search_mode("code", "default")) == ("lexical", texts)
    answer = await user.client.retrieve("the hall", users="u1", mode="code")
    assert {hit.embedding_status for hit in answer.hits} == {"pending"}
    assert "degraded" in [warning.code for warning in answer.warnings]
    # Other users are not affected.
    await eventually(partial(_is_ready, user, "general"), "the other mode has its vector")

    # Rename into place, as an operator should; the worker retries at its own pace.
    shutil.copytree(tiny_models / "tiny48", tmp_path / "coming")
    (tmp_path / "coming").rename(tmp_path / "late")
    await user.ready()
    health = (await user.command("health"))["modes"]
    assert health["code"]["ready"] == 5
    assert health["code"]["pending"] == 0
    assert health["code"]["error"] is None
    assert (await user.search_mode("code", "default")) == ("hybrid", texts)


async def _is_ready(user: ModeUser, mode: str) -> bool:
    status = (await user.command("health"))["modes"][mode]
    return bool(status["ready"] == status["eligible"])
