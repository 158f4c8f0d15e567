"""`kill -9` while the pipelines are edited and turns arrive: none is lost or doubled, each is made by one revision."""

import asyncio
from itertools import pairwise
from typing import Any

from modestream_client import MemoryClient

from schemas.state.policies import OPERATOR
from tests.builders.custom_steps import STAMP
from tests.worlds.live.flow import USERS, Flow, FlowTurn
from tests.worlds.live.processes import Deployment

STEPS = "tests.builders.custom_steps"
EDITS: list[dict[str, Any]] = [
    {"op": "insert_after", "at": "memorize.ingest", "step_id": "memorize.stamp", "implementation": f"{STEPS}.Stamp"},
    {"op": "replace", "step_id": "retrieve.rerank", "implementation": f"{STEPS}.Reverse"},
    {"op": "remove", "step_id": "memorize.intend"},
]
"""Revision 1 inserts a step, 2 replaces one, 3 removes one; each is followed by a kill."""

TURNS_BETWEEN = 40


async def test_edits_under_load_and_kills_lose_and_double_no_turn(deployment: Deployment) -> None:
    deployment.more["PIPELINE_PACKAGES"] = '["tests"]'
    worker = await deployment.ready()
    async with deployment.client() as client:
        flow = Flow(client)
        publishing = asyncio.create_task(flow.publish(range((len(EDITS) + 1) * TURNS_BETWEEN)))
        for number, edit in enumerate(EDITS, start=1):
            await flow.until_accepted(number * TURNS_BETWEEN)
            made = await client.command("edit_pipeline", {"edits": [edit]}, principal=OPERATOR)
            assert made["revision"] == number
            await worker.kill()
            worker = await deployment.ready()
        await publishing
        await flow.check()
        listed = await client.command("list_revisions", principal=OPERATOR)
        assert [revision["number"] for revision in listed["revisions"]] == [3, 2, 1, 0]
        for user in range(USERS):
            mine = [turn for turn in flow.accepted if turn.user_id == f"u{user}"]
            in_order = sorted(mine, key=lambda turn: flow.accepted[turn].offset)
            _check_revisions([await _record(client, flow, turn) for turn in in_order])


async def _record(client: MemoryClient, flow: Flow, turn: FlowTurn) -> dict[str, Any]:
    memory_id = flow.accepted[turn].memory_id
    return dict(await client.command("get_memory", {"memory_id": memory_id}, user_id=turn.user_id))


def _check_revisions(records: list[dict[str, Any]]) -> None:
    """The records of one user in the order of the log: so are their revisions, and their texts show the steps."""
    revisions = [record.get("revision", 0) for record in records]
    assert all(before <= after for before, after in pairwise(revisions)), revisions
    for record in records:
        assert record["text"].endswith(STAMP) == (record.get("revision", 0) >= 1)
        assert record["version"] == 1
