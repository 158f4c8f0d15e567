"""Maintenance by the clock: a worker makes backups and runs jobs by itself."""

import asyncio
import json

from operations.archive import Manifest
from tests.worlds.live.processes import Deployment, eventually

OFTEN = 0.0005
"""Hours: some two seconds."""


async def test_worker_backs_up_and_verifies_by_itself(deployment: Deployment) -> None:
    folder = deployment.directory / "backup"
    deployment.more |= {"MAINTAIN_EVERY": json.dumps({"verify": OFTEN, "backup": OFTEN}), "BACKUP_TO": str(folder)}
    await deployment.ready()
    async with deployment.client() as client:
        await client.remember("The kettle is blue.")

        async def has_backup() -> bool:
            manifest = await asyncio.to_thread(Manifest.load, folder)
            return manifest is not None and any(segment.log == "turns" for segment in manifest.segments)

        async def is_verified() -> bool:
            maintenance = (await client.command("health"))["maintenance"]
            last = maintenance["verify"]["last"]
            return maintenance["backup"]["last"] is not None and last is not None and last["state"] == "done"

        await eventually(has_backup, "the turn is in a backup")
        await eventually(is_verified, "health has the last runs")
