"""TLS and SASL: a client and a worker at a listener that asks for both."""

import json
from pathlib import Path

import pytest
from modestream_client import KafkaSecurity, MemoryClient, MemoryUnreachable

from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.processes import deployed
from tests.worlds.live.secured_listener import PASSWORD, USERNAME


def security(broker: RunningBroker, password: str = PASSWORD) -> KafkaSecurity:
    return KafkaSecurity(
        protocol="SASL_SSL", mechanism="PLAIN", username=USERNAME, password=password, ca_file=broker.secured.ca_file
    )


async def test_worker_and_client_log_in_over_tls(
    live_broker: RunningBroker, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    known = security(live_broker).model_dump(mode="json", exclude_none=True, exclude={"password"})
    setting = json.dumps({**known, "password_env": "KAFKA_PASSWORD"})
    with deployed(live_broker.secured.bootstrap, tmp_path, models, KAFKA_SECURITY=setting) as deployment:
        await deployment.ready()
        async with deployment.client(security=security(live_broker)) as memory:
            await memory.remember("The kettle is blue.")
            assert [hit.text for hit in (await memory.retrieve("kettle")).hits] == ["The kettle is blue."]
            assert (await memory.forget(user=True)).forgotten == 1


async def test_wrong_password_is_refused(live_broker: RunningBroker) -> None:
    with pytest.raises(MemoryUnreachable):
        async with MemoryClient(live_broker.secured.bootstrap, timeout=5, security=security(live_broker, "guessed")):
            pass


async def test_broker_with_an_unknown_certificate_is_not_trusted(live_broker: RunningBroker) -> None:
    untrusting = security(live_broker).model_copy(update={"ca_file": None})
    with pytest.raises(MemoryUnreachable):
        async with MemoryClient(live_broker.secured.bootstrap, timeout=5, security=untrusting):
            pass
