import asyncio
import os
import signal
from contextlib import ExitStack
from pathlib import Path

from streams.up.layout import free_port
from tests.worlds.live.broker import running_broker
from tests.worlds.live.flow import Flow, FlowTurn
from tests.worlds.live.processes import Deployment, deployed, eventually

TURNS = 150


async def test_killed_broker_loses_no_turn(models: Path, tmp_path: Path) -> None:
    port = free_port()
    with ExitStack() as stack:
        broker = stack.enter_context(running_broker(tmp_path / "broker", port))
        deployment = stack.enter_context(deployed(broker.bootstrap, tmp_path, models))
        worker = await deployment.ready()
        async with deployment.client(timeout=20.0) as client:
            flow = Flow(client)
            publishing = asyncio.create_task(flow.publish(range(TURNS)))
            await flow.until_accepted(TURNS // 3)
            os.kill(broker.pid, signal.SIGKILL)
            stack.enter_context(running_broker(tmp_path / "broker", port))

            async def all_accepted() -> bool:
                await asyncio.to_thread(worker.health)  # Fails with the log of a worker that has ended.
                return publishing.done()

            await eventually(all_accepted, "all turns are accepted", within_s=150.0)
            await flow.check()
            await flow.embedded()
            assert worker.is_running
            assert await worker.terminate(within_s=20) == 0


async def test_worker_without_vector_index_finds_turns_lexically(deployment: Deployment) -> None:
    deployment.more |= {"QDRANT_URL": "http://127.0.0.1:1", "QDRANT_GRPC_PORT": str(free_port())}
    await deployment.ready()
    async with deployment.client() as client:
        turn = FlowTurn(1)
        await client.remember(turn.content, turn_id=turn.turn_id)
        answer = await client.retrieve(f"where is the box {turn.word}?")
        assert [hit.turn_id for hit in answer.hits] == [turn.turn_id]
        assert answer.strategy == "lexical"
        assert [warning.code for warning in answer.warnings] == ["degraded"]
        assert answer.hits[0].embedding_status == "pending"
        assert (await client.command("health"))["vector_index"].startswith("unavailable")
