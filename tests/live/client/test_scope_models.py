"""A deployment with its own scope model over Kafka: used by the client, probed by `up`, refused with another model."""

from modestream_client import MemoryClient

from streams.bootstrap.readiness import readiness_probe
from tests.worlds.live.processes import Deployment, eventually

MODEL = "tests.builders.scopes.AgentScope"


def asking(deployment: Deployment, agent: str) -> MemoryClient:
    """Return a client of the user u1 and one agent."""
    scope = {"agent_id": agent}
    return MemoryClient(deployment.bootstrap, user_id="u1", topic_prefix=deployment.prefix, timeout=20, scope=scope)


async def test_client_uses_the_fields_of_the_scope_model(deployment: Deployment) -> None:
    deployment.more["SCOPE_MODEL"] = MODEL
    worker = await deployment.ready()
    async with asking(deployment, "bob") as bob, asking(deployment, "eve") as eve:
        for client in (bob, eve):
            await client.remember("The kettle is blue.", turn_id="t-1")
            await client.command("set_intention", {"goals": ["descale the kettle"]})
        assert [hit.scope["agent_id"] for hit in (await bob.retrieve("kettle")).hits] == ["bob"]
        both = await bob.retrieve("kettle", scope={"agent_id": ["bob", "eve"]})
        assert sorted(hit.scope["agent_id"] for hit in both.hits) == ["bob", "eve"]
        context = await eve.assemble("kettle", scope={"agent_id": "*"})
        assert "kettle is blue" in context.messages[1]["content"]
        assert (await bob.command("forget", {"project": True}))["forgotten"] > 0
        assert [hit.scope["agent_id"] for hit in (await bob.retrieve("kettle", scope={"agent_id": "*"})).hits] == [
            "eve"
        ]
        assert len((await eve.command("get_intention"))["goals"]) == 1
    probe = readiness_probe(deployment.prefix)
    assert await probe(deployment.bootstrap), "the probe is answered although its user is invalid in this model"
    await worker.terminate(30)
    del deployment.more["SCOPE_MODEL"]
    other = deployment.start()

    async def ended() -> bool:
        return not other.is_running

    await eventually(ended, "a worker without the model does not run on its data")
    assert "was created with scopes of agent_id, channel, project_id, user_id" in other.log.read_text()
