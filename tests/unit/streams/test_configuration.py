"""Names of variables that no setting has."""

import pytest

from gateway.connection_settings import StdioSettings
from gateway.settings import GatewaySettings
from streams.configuration import OF_GATEWAYS, unknown_names
from streams.settings import Settings


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("PARTITION", "PARTITIONS"),
        ("BROKR", "BROKER"),
        ("GATEWAY_KEY", "GATEWAY_KEYS"),
        ("QDRANT_PORT", "QDRANT_GRPC_PORT"),
        ("USR", "USER"),
    ],
)
def test_unknown_name_is_told_with_the_most_similar(name: str, similar: str) -> None:
    [told] = unknown_names(Settings, StdioSettings, GatewaySettings, variables={f"MODESTREAM_{name}": "12"})
    assert told == f"MODESTREAM_{name} is ignored: there is no such setting; MODESTREAM_{similar} is similar"


def test_unlike_name_is_told_alone() -> None:
    [told] = unknown_names(Settings, variables={"MODESTREAM_XYZZY": "1"})
    assert told == "MODESTREAM_XYZZY is ignored: there is no such setting"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MODESTREAM_BROKER", "kafka://k:9092"),
        ("modestream_broker", "kafka://k:9092"),
        ("MODESTREAM_USER", "ana"),
        ("MODESTREAM_GATEWAY_ANYTHING", "a name that the gateway judges"),
        ("MODESTREAM_OPENAI_UPSTREAM", "https://api.openai.com/v1"),
        ("MODESTREAM_OPENAI_UPSTREAM_KEY_ENV", "OPENAI_API_KEY"),
        ("MODESTREAM_URL", "http://127.0.0.1:8080"),
        ("MODESTREAM_WORKER_SERVICE_HOST", "10.0.0.1"),
        ("MODESTREAM_SERVICE_HOST", "10.0.0.1"),
        ("MODESTREAM_WORKER_SERVICE_PORT", "9464"),
        ("MODESTREAM_WORKER_SERVICE_PORT_METRICS", "9464"),
        ("MODESTREAM_WORKER_PORT", "tcp://10.0.0.1:9464"),
        ("MODESTREAM_PORT", "tcp://10.0.0.1:9464"),
        ("MODESTREAM_WORKER_PORT_9464_TCP", "tcp://10.0.0.1:9464"),
        ("MODESTREAM_WORKER_PORT_9464_TCP_PROTO", "tcp"),
        ("BROKER", "no name of ours"),
    ],
)
def test_nothing_is_told_of_settings_and_links_of_kubernetes(name: str, value: str) -> None:
    assert unknown_names(Settings, StdioSettings, variables={name: value}, passed_over=OF_GATEWAYS) == []
