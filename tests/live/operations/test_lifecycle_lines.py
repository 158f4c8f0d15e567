"""The log of a worker tells its life: start, partitions, what it does to others, signal, end."""

import json
from typing import Any

from streams.worker import OTHER_DIRECTORIES
from tests.worlds.live.processes import Deployment, Worker, eventually


def lines(worker: Worker) -> list[dict[str, Any]]:
    """The lines that it has logged; each is JSON."""
    return [json.loads(line) for line in worker.log.read_text().splitlines()]


def events(worker: Worker) -> list[str]:
    return [line["event"] for line in lines(worker)]


async def test_log_tells_the_life_of_two_workers_with_a_directory_each(deployment: Deployment) -> None:
    first = await deployment.ready("first")
    second = deployment.start("second")

    async def both_warn() -> bool:
        return OTHER_DIRECTORIES in events(first) and OTHER_DIRECTORIES in events(second)

    await eventually(both_warn, "the workers see each other")
    assert await second.terminate(within_s=30) == 0
    assigned = [line for line in lines(first) if line["event"] == "partitions assigned"]
    assert assigned[0]["gained"] == list(range(deployment.settings.partitions))
    assert (
        assigned[-1]["lost"]
        == [line for line in lines(second) if line["event"] == "partitions ready"][-1]["partitions"]
    )
    own = [event for event in events(second) if event in ("starting", "partitions ready", "stopping", "ended")]
    assert own == ["starting", "partitions ready", "stopping", "ended"]
    last = lines(second)[-1]
    assert last["event"] == "ended"
    assert last["code"] == 0
    assert last["reason"] == "asked to"
