"""Workers of one data directory hand partitions over with all that they have: nothing is made again.

A worker is killed, the other one takes its partitions over, and gives them back when it is started again.
"""

import re

from tests.worlds.live.flow import Flow
from tests.worlds.live.processes import Deployment, Worker

TURNS = 60

EMBEDDED = re.compile(r'^modestream_embedded_total\{status="ready"\} (\S+)$', re.MULTILINE)


async def test_partition_is_taken_over_without_making_it_again(deployment: Deployment) -> None:
    deployment.partitions = 4
    first, second = deployment.start(worker_id="first"), deployment.start(worker_id="second")
    await deployment.served_by(first, second)
    async with deployment.client() as client:
        flow = Flow(client)
        await flow.publish(range(TURNS))
        await flow.embedded()
        await deployment.until_processed()
        assert embedded_by(first) + embedded_by(second) == TURNS
        before = embedded_by(second)
        await first.kill()
        await deployment.served_by(second)
        await flow.check()
        await flow.publish(range(TURNS, TURNS + 20))
        await flow.embedded()
        await deployment.until_processed()
        assert embedded_by(second) - before == 20
        again = deployment.start(worker_id="first")
        await deployment.served_by(again, second)
        await flow.check()
        await flow.embedded()
        assert embedded_by(again) == 0
        answer = await client.retrieve("the box on the shelf", users="u0")
        assert answer.strategy == "hybrid"
        assert answer.warnings == ()
    for worker in deployment.workers:
        written = worker.log.read_text()
        assert "rebuilding the lexical index" not in written
        assert "re-embedding memories" not in written


def embedded_by(worker: Worker) -> int:
    found = EMBEDDED.search(worker.metrics())
    return 0 if found is None else int(float(found.group(1)))
