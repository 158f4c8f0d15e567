"""A worker that may create nothing starts only against a deployment that is there."""

import os

from tests.builders.taxonomies import changed
from tests.live.operations.test_service_record import refusal
from tests.worlds.live.processes import Deployment


async def test_worker_that_may_create_nothing_is_refused_without_topics(deployment: Deployment) -> None:
    deployment.more["PROVISION"] = "validate"
    worker = deployment.start("first")
    log = await refusal(worker)
    assert "setting MODESTREAM_PROVISION is `validate`: topics are missing, of 2 partitions each: " in log
    assert "Traceback" not in log
    assert await worker.terminate(1) == os.EX_CONFIG


async def test_worker_that_may_create_nothing_serves_a_deployment_that_is_there(deployment: Deployment) -> None:
    await (await deployment.ready("first")).terminate(30)
    deployment.more["PROVISION"] = "validate"
    await deployment.ready("empty")
    async with deployment.client() as client:
        await client.remember("The kettle is blue.")
        assert len((await client.retrieve("kettle")).hits) == 1


async def test_worker_with_other_tables_of_interaction_modes_is_refused(deployment: Deployment) -> None:
    await (await deployment.ready("first")).terminate(30)
    tables = deployment.directory / "tables.json"
    tables.write_text(changed({"version": "ours"}))
    deployment.more["TAXONOMY"] = str(tables)
    log = await refusal(deployment.start("first"))
    assert "has the tables '1.0'" in log
    assert "Traceback" not in log
