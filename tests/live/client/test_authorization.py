"""Principals over Kafka: one without a grant gets nothing."""

import json

import pytest
from modestream_client import MemoryClient, MemoryServiceError

from tests.worlds.live.processes import Deployment

GRANTS = {"gateway": [{"user_id": "*"}], "reader": [{"user_id": "ana", "project_id": "p1", "may": ["read"]}]}


def asking(deployment: Deployment, principal: str | None) -> MemoryClient:
    return MemoryClient(
        deployment.bootstrap, user_id="ana", topic_prefix=deployment.prefix, timeout=20, principal=principal
    )


async def test_principals_are_limited_to_their_grants(deployment: Deployment) -> None:
    policy = deployment.directory / "policy.json"
    policy.write_text(json.dumps({"principals": GRANTS}))
    deployment.more["AUTHORIZATION"] = str(policy)
    await deployment.ready()
    async with asking(deployment, "gateway") as gateway:
        for project in ("p1", "p2"):
            await gateway.remember(f"The kettle of {project} is blue.", project_id=project)
        assert len((await gateway.retrieve("kettle", projects="*")).hits) == 2
        assert "modes" in await gateway.command("list_modes")
    async with asking(deployment, "reader") as reader:
        found = await reader.retrieve("kettle", projects="*")
        assert [hit.text for hit in found.hits] == ["The kettle of p1 is blue."], "narrowed to what it may read"
        context = await reader.assemble("kettle", projects="*")
        assert "p2" not in context.messages[1]["content"]
        assert "modes" in await reader.command("list_modes", project_id="p1")
        for refused in (
            reader.remember("No.", project_id="p1"),
            reader.retrieve("kettle", projects="p2"),
            reader.command("list_modes", project_id="p2"),
            reader.command("set_default_mode", {"name": None}, project_id="p1"),
        ):
            with pytest.raises(MemoryServiceError) as error:
                await refused
            assert error.value.code == "not_allowed"
    async with asking(deployment, None) as nobody:
        with pytest.raises(MemoryServiceError) as error:
            await nobody.retrieve("kettle", projects="*")
        assert error.value.code == "not_allowed"
