"""`kill -9` while forgetting, and between `hidden` and `erased`: one receipt, complete, erased in the end."""

import asyncio
import json
from typing import Any

from streams.adapters.kafka.logs import read_to_end
from tests.live.kills.test_forget_kills import TRIES, kill_during, remember_turns
from tests.worlds.live.processes import Deployment, eventually

TURNS = 200


async def test_a_receipt_outlives_kills(deployment: Deployment) -> None:
    worker = await deployment.ready()
    async with deployment.client() as client:
        for user in (f"user-{number}" for number in range(TRIES)):
            await remember_turns(client, user, TURNS)
            due = (await client.forget(user=True, dry_run=True, user_id=user)).would_forget
            forgetting = asyncio.create_task(client.command("forget", {"user": True}, user_id=user))
            if await kill_during(forgetting, worker, client, user):
                break
            await forgetting
        worker = await deployment.ready()
        result = await forgetting
        # Before a pass has looked for what is left.
        await worker.kill()
        await deployment.ready()
        receipt_id = result["receipt"]["receipt_id"]

        async def told() -> list[Any]:
            topic = deployment.topics.receipts
            records = await read_to_end(deployment.settings, topic, range(deployment.partitions))
            return [
                json.loads(record.value) for record in records if record.key == receipt_id.encode() and record.value
            ]

        async def is_erased() -> bool:
            return bool(receipts := await told()) and receipts[-1]["state"] == "erased"

        await eventually(is_erased, "the receipt says erased")
        receipts = await told()
        assert result["forgotten"] == result["receipt"]["forgotten"] == due
        assert {receipt["forgotten"] for receipt in receipts} == {due}
        assert receipts[0]["state"] == "hidden"
