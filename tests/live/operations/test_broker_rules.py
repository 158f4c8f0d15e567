"""The broker's rules in the documentation: worker, gateway and program, with a principal each, can do their work."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import TopicAuthorizationFailedError
from modestream_client import KafkaSecurity
from modestream_client.kafka.security import connection_options

from tests.worlds.live.broker import RunningBroker, running_broker
from tests.worlds.live.gateways import gateway_on
from tests.worlds.live.guarded_broker import GuardedBroker, add_rule, documented_rules
from tests.worlds.live.processes import ROOT, Deployment, deployed
from tests.worlds.live.secured_listener import PASSWORD

SCRIPT = re.compile(r"```sh\n(P=memory\..*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker where nothing is allowed at first."""
    with running_broker(tmp_path_factory.mktemp("guarded"), kind=GuardedBroker) as running:
        yield running


def security(broker: RunningBroker, principal: str) -> KafkaSecurity:
    return KafkaSecurity(
        protocol="SASL_SSL", mechanism="PLAIN", username=principal, password=PASSWORD, ca_file=broker.secured.ca_file
    )


def setting(broker: RunningBroker, principal: str) -> str:
    """Return the same as the setting `KAFKA_SECURITY`."""
    fields = security(broker, principal).model_dump(mode="json", exclude_none=True, exclude={"password"})
    return json.dumps({**fields, "password_env": "KAFKA_PASSWORD"})


@pytest.fixture
async def deployment(
    broker: RunningBroker, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Deployment]:
    """A worker that serves by the documented rules of its prefix."""
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    known = setting(broker, "worker")
    with deployed(broker.secured.bootstrap, tmp_path, models, KAFKA_SECURITY=known) as deployment:
        found = SCRIPT.search((ROOT / "docs" / "production.md").read_text(encoding="utf-8"))
        assert found is not None
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        try:
            for arguments in documented_rules(found.group(1), deployment.prefix):
                await add_rule(admin, arguments)
        finally:
            await admin.close()
        await deployment.ready()
        yield deployment


def refused(log: Path) -> list[str]:
    return [line for line in log.read_text(encoding="utf-8").splitlines() if "uthorization" in line]


async def test_worker_gateway_and_program_work_by_the_documented_rules(
    broker: RunningBroker, deployment: Deployment, tmp_path: Path
) -> None:
    async with deployment.client(security=security(broker, "program")) as memory:
        await memory.remember("The kettle is blue.")
        assert [hit.text for hit in (await memory.retrieve("kettle")).hits] == ["The kettle is blue."]
    login = connection_options(security(broker, "program"))
    async with AIOKafkaProducer(bootstrap_servers=broker.secured.bootstrap, **login) as producer:
        with pytest.raises(TopicAuthorizationFailedError):
            await producer.send_and_wait(deployment.topics.remembered, b"{}")
    environment = {**deployment.environment, "MODESTREAM_KAFKA_SECURITY": setting(broker, "gateway")}
    async with gateway_on(environment, tmp_path) as (gateway, http):
        await gateway.has_status(http, "/ready", 200)
        turn = {"conversation_id": "c1", "role": "user", "content": "The stove is white."}
        stored = await http.post("/v1/users/u1/turns", json=turn)
        assert stored.status_code == httpx.codes.CREATED, stored.text
        assert (await http.get("/v1/users/u1/export")).text.count("\n") == len(("kettle", "stove"))
        assert (await http.get("/v1/users/u1/runs")).status_code == httpx.codes.OK
        assert (await http.get("/v1/users")).json()["items"] != []
        refusals = [
            line for log in (gateway.log, *(worker.log for worker in deployment.workers)) for line in refused(log)
        ]
        assert refusals == []
