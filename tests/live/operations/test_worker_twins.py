"""Two workers with one id: the one whose place the other has taken ends, and neither returns to fence the other."""

import json
import os
from collections.abc import Mapping
from contextlib import closing

import pytest

from streams.adapters.kafka.clients import hosts_of_members
from streams.bootstrap.member_guard import MemberFile, check_member
from streams.topics import group_id
from tests.worlds.live.processes import Deployment, Worker

NOTICE_S = 60
"""A heartbeat interval after the second has joined; the rest is its start, on a busy machine."""


async def test_worker_whose_place_another_one_has_taken_ends(deployment: Deployment) -> None:
    # Two workers need a store that both may use; with none that answers, memories are found by words.
    deployment.more |= {"QDRANT_URL": "http://127.0.0.1:1", "QDRANT_GRPC_PORT": "1", "WORKER_ID": "twin"}
    first = await deployment.ready("first")
    (member,) = await members(deployment)
    assert noted(first) == member
    # As if the first had ended: the start of the second is not refused, and not delayed.
    with closing(MemberFile(deployment.directory / "second" / "run" / "worker-twin" / "member.json")) as file:
        file.note(member)
    second = deployment.start("second")
    assert await first.ended(within_s=NOTICE_S) == os.EX_CONFIG
    assert "another worker has taken this one's place" in first.log.read_text()
    await deployment.served_by(second)
    assert "waiting for its end" not in second.log.read_text()
    assert set(await members(deployment)) == {noted(second)} != {member}
    # The first's next start: its former member is not the one of the group.
    with pytest.raises(
        SystemExit, match=r"MODESTREAM_WORKER_ID: another worker with this id is running on 127\.0\.0\.1"
    ):
        await check_member(member.rsplit("-", 5)[0], member, lambda: members(deployment), patience_s=0.5)


async def members(deployment: Deployment) -> Mapping[str, str]:
    """Return the addresses of the members of the workers' group by their ids."""
    return await hosts_of_members(deployment.settings, group_id(deployment.settings))


def noted(worker: Worker) -> str:
    return str(json.loads((worker.data_dir / "run" / "worker-twin" / "member.json").read_text())["member"])
