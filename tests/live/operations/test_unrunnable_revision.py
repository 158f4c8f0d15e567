"""A worker without a class of the current revision, and an edit of a module that exits, on a real broker."""

from pathlib import Path

import pytest
from modestream_client import MemoryServiceError

from schemas.state.policies import OPERATOR
from tests.live.operations.test_migrate import operate
from tests.worlds.live.processes import Deployment

INSERT = {"op": "insert_after", "at": "retrieve.rank", "step_id": "retrieve.own"}


async def test_worker_serves_without_a_missing_class_and_the_command_line_rolls_back(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.more["PIPELINE_PACKAGES"] = '["tests", "unittest"]'
    worker = await deployment.ready()
    async with deployment.client(principal=OPERATOR) as client:
        exits = {**INSERT, "implementation": "unittest.__main__.main"}
        with pytest.raises(MemoryServiceError, match="SystemExit"):
            await client.command("edit_pipeline", {"edits": [exits], "dry_run": True})
        reverse = {**INSERT, "implementation": "tests.builders.custom_steps.Reverse"}
        assert (await client.command("edit_pipeline", {"edits": [reverse]}))["revision"] == 1
        await worker.kill()
        deployment.more["PIPELINE_PACKAGES"] = "[]"
        worker = await deployment.ready()
        await client.remember("The lantern is red.", conversation_id="c1")
        found = await client.retrieve("lantern")
        assert [hit.text for hit in found.hits] == ["The lantern is red."]
        pipelines = (await client.command("health"))["pipelines"]
        assert pipelines["revision"] == 1
        assert pipelines["running"] == 0
        assert pipelines["refused"]["revision"] == 1
        code, printed = await operate(deployment, tmp_path / "operator", "pipeline", "rollback", "0")
        assert code == 0
        assert printed.split()[:2] == ["revision", "2"]
        pipelines = (await client.command("health"))["pipelines"]
        assert pipelines == {"revision": 2, "running": 2, "refused": None}
