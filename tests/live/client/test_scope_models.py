"""A deployment with its own scope model over Kafka: a boundary of two fields, and a further field.

Used by the client, probed by `up`, served by a gateway; a worker and a gateway with another model are refused.
"""

import os
from pathlib import Path

from modestream_client import MemoryClient

from schemas.scope_models import deployed_scope
from streams.bootstrap.data_directory import readiness_probe
from tests.builders.boundary_scopes import TenantAgentScope
from tests.worlds.live.gateways import Gateway, gateway_on
from tests.worlds.live.processes import Deployment, eventually

MODEL = "tests.builders.boundary_scopes.TenantAgentScope"

SCOPE = deployed_scope(TenantAgentScope)


def asking(deployment: Deployment, organization: str, agent: str) -> MemoryClient:
    return MemoryClient(
        deployment.bootstrap,
        scope={"organization_id": organization, "user_id": "u1", "agent_id": agent},
        boundary=SCOPE.boundary_fields,
        topic_prefix=deployment.prefix,
        timeout=20,
    )


async def test_deployment_has_the_boundary_and_the_fields_of_its_scope_model(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.more["SCOPE_MODEL"] = MODEL
    worker = await deployment.ready()
    async with (
        asking(deployment, "acme", "bob") as bob,
        asking(deployment, "acme", "eve") as eve,
        asking(deployment, "globex", "bob") as stranger,
    ):
        for client in (bob, eve, stranger):
            await client.remember("The kettle is blue.", turn_id="t-1")
            await client.set_intention(goals=["descale the kettle"])
        [hit] = (await bob.retrieve("kettle")).hits
        assert hit.scope == {"organization_id": "acme", "user_id": "u1", "project_id": "default", "agent_id": "bob"}
        both = await bob.retrieve("kettle", scope={"agent_id": "*"})
        assert sorted(hit.scope["agent_id"] for hit in both.hits) == ["bob", "eve"]
        everybody = await bob.retrieve("kettle", users=["acme/u1", "globex/u1"], scope={"agent_id": ["bob", "eve"]})
        assert len(everybody.hits) == 3
        context = await eve.assemble("kettle", scope={"agent_id": "*"})
        assert "kettle is blue" in context.messages[1]["content"]
        async with gateway_on(deployment.environment, tmp_path) as (gateway, http):
            await gateway.has_status(http, "/ready", 200)
            asked = {"query": "kettle", "agent_id": "*"}
            found = await http.post("/v1/users/acme%2Fu1/memories/search", json=asked)
            assert len(found.json()["hits"]) == 2
        assert (await bob.forget(project=True)).forgotten > 0
        left = await bob.retrieve("kettle", scope={"agent_id": "*"})
        assert [hit.scope["agent_id"] for hit in left.hits] == ["eve"]
        assert (await bob.forget(user=True)).forgotten > 0
        assert (await eve.retrieve("kettle")).hits == ()
        assert (await eve.get_intention()).goals == ()
        assert len((await stranger.retrieve("kettle")).hits) == 1
        assert len((await stranger.get_intention()).goals) == 1
    probe = readiness_probe(deployment.prefix, SCOPE)
    assert await probe(deployment.bootstrap)
    assert await readiness_probe(deployment.prefix)(deployment.bootstrap), "answered, although its user is invalid here"
    await worker.terminate(30)
    del deployment.more["SCOPE_MODEL"]
    other, refused = deployment.start(), Gateway(deployment.environment, tmp_path / "other-gateway.log")

    async def have_ended() -> bool:
        return not other.is_running and refused.process.poll() is not None

    await eventually(have_ended, "neither a worker nor a gateway without the model runs on this deployment")
    conflict = "was created with scopes of agent_id, organization_id, project_id, user_id, not project_id, user_id"
    assert conflict in other.log.read_text()
    assert conflict in refused.log.read_text()
    assert refused.process.returncode == os.EX_CONFIG
