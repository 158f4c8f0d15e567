"""What a deployment was made with is in Kafka: a worker with other settings is refused, whatever its disk holds."""

from tests.worlds.live.processes import Deployment, Worker, eventually

MODEL = "tests.builders.scopes.AgentScope"


async def refusal(worker: Worker) -> str:
    """Return the log of a worker that must end by itself."""

    async def ended() -> bool:
        return not worker.is_running

    await eventually(ended, "a worker with other settings than the deployment's ends")
    return worker.log.read_text()


async def test_another_scope_model_is_refused_on_an_empty_data_directory(deployment: Deployment) -> None:
    first = await deployment.ready("first")
    async with deployment.client() as client:
        await client.remember("The kettle is blue.", turn_id="t-1")
        assert await first.terminate(30) == 0
        deployment.more["SCOPE_MODEL"] = MODEL
        log = await refusal(deployment.start("empty"))
        assert "with scopes of project_id, user_id" in log
        assert "agent_id, channel, project_id, user_id" in log
        assert "TOPIC_PREFIX" in log
        del deployment.more["SCOPE_MODEL"]
        await deployment.ready("empty")
        assert [hit.text for hit in (await client.retrieve("kettle")).hits] == ["The kettle is blue."]
