"""An empty disk: a worker restores all state from Kafka."""

import shutil

from modestream_client import MemoryClient

from tests.worlds.live.flow import Flow, hits_of
from tests.worlds.live.processes import Deployment
from tests.worlds.live.vectors_on_disk import vectors_on_disk

TURNS = 40


async def test_worker_restores_its_state_on_an_empty_disk(deployment: Deployment) -> None:
    worker = await deployment.ready()
    async with deployment.client() as client:
        flow = Flow(client)
        await flow.publish(range(TURNS))
        edited = await client.remember("We deploy to heroku.", turn_id="edited")
        await client.remember("We deploy to fly.io.", turn_id="edited")
        await flow.embedded()
        await worker.kill()
        shutil.rmtree(worker.data_dir)
        await deployment.ready()

        record = await client.command("get_memory", {"memory_id": edited.memory_id})
        assert record["text"] == "We deploy to fly.io."
        assert record["version"] == 2
        assert len(record["versions"]) == 2
        again = await client.remember("We deploy to fly.io.", turn_id="edited")
        assert again.duplicate is True
        assert again.version == 2
        assert again.memory_id == edited.memory_id
        for turn, before in flow.accepted.items():
            assert [hit.memory_id for hit in await hits_of(client, turn)] == [before.memory_id]
        await deployment.until_restored()
        await flow.embedded()
        answer = await client.retrieve("where do we deploy?")
        assert answer.strategy == "hybrid"
        assert answer.warnings == ()
        assert answer.hits[0].text == "We deploy to fly.io."


async def test_worker_restores_every_vector_after_a_partial_disk_loss(deployment: Deployment) -> None:
    worker = await deployment.ready()
    async with deployment.client() as client:
        flow = Flow(client)
        for number, part in enumerate(["partitions", "vectors"]):
            # Killed with its reports of vectors unread or uncommitted.
            await flow.publish(range(number * TURNS, (number + 1) * TURNS))
            await worker.kill()
            shutil.rmtree(worker.data_dir / part)
            worker = await deployment.ready()
        await flow.check()
        await deployment.until_restored()
        await flow.embedded()
        await deployment.until_processed()
        await worker.kill()
    ids = {before.memory_id for before in flow.accepted.values() if before.memory_id}
    assert len(ids) == 2 * TURNS
    stored, points = await vectors_on_disk(worker.data_dir, ids, deployment.partitions)
    assert {memory.memory_id for memory in stored} == ids
    assert points == len(ids)


async def test_forgotten_categories_stay_gone_on_an_empty_disk(deployment: Deployment) -> None:
    worker = await deployment.ready()
    async with deployment.client() as client:
        for project, name in (("p1", "hosting"), ("p2", "money")):
            about = {"name": name, "description": "servers and deploys"}
            await client.command("declare_category", about, project_id=project)
        await client.remember("We decided to host the beta on fly.io.", project_id="p1")
        await client.command("rename_category", {"name": "hosting", "new_name": "infrastructure"}, project_id="p1")
        assert await category_names(client) == {"p1": ["infrastructure"], "p2": ["money"]}
        for arguments, left in (({"project": True}, ["money"]), ({"user": True}, [])):
            await client.command("forget", arguments, project_id="p1")
            await worker.kill()
            shutil.rmtree(worker.data_dir)
            worker = await deployment.ready()
            assert await category_names(client) == {"p1": [], "p2": left}


async def category_names(client: MemoryClient) -> dict[str, list[str]]:
    listed = {project: await client.command("list_categories", project_id=project) for project in ("p1", "p2")}
    return {project: [category["name"] for category in result["categories"]] for project, result in listed.items()}
