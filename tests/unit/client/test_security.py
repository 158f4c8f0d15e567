"""TLS and SASL as settings, and as the arguments of Kafka clients."""

import ssl
from pathlib import Path

import faust
import pytest
from modestream_client import KafkaSecurity
from modestream_client.kafka.security import connection_options

from streams.runtime.kafka_app import kafka_credentials
from streams.settings import Settings
from tests.worlds.live.secured_listener import create_listener

LOGIN = {"username": "gateway", "password": "secret"}


def test_without_security_nothing_is_set() -> None:
    assert connection_options(None) == {}
    assert connection_options(KafkaSecurity(protocol="PLAINTEXT")) == {}
    assert kafka_credentials(None) is None


def test_login_over_tls_is_as_aiokafka_takes_it(tmp_path: Path) -> None:
    ca_file = create_listener(tmp_path).ca_file
    options = connection_options(KafkaSecurity(protocol="SASL_SSL", ca_file=ca_file, **LOGIN))
    context = options.pop("ssl_context")
    assert options == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "gateway",
        "sasl_plain_password": "secret",
    }
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert len(context.get_ca_certs()) == 1


def test_own_certificate_is_loaded(tmp_path: Path) -> None:
    certificates = create_listener(tmp_path).certificates
    options = connection_options(KafkaSecurity(protocol="SSL", cert_file=certificates))
    assert set(options) == {"security_protocol", "ssl_context"}
    with pytest.raises(OSError, match="No such file"):
        connection_options(KafkaSecurity(protocol="SSL", cert_file=tmp_path / "missing.pem"))


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL", "SASL_PLAINTEXT"])
def test_faust_gets_the_same(protocol: str) -> None:
    login = LOGIN if protocol.startswith("SASL") else {}
    credentials = kafka_credentials(KafkaSecurity.model_validate({"protocol": protocol, "mechanism": "PLAIN", **login}))
    assert credentials is not None
    assert credentials.protocol.value == protocol
    if isinstance(credentials, faust.SASLCredentials):
        assert credentials.username == "gateway"
        assert credentials.password == "secret"
        assert credentials.mechanism.value == "PLAIN"


def test_password_may_be_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    security = KafkaSecurity(protocol="SASL_PLAINTEXT", username="gateway", password_env="KAFKA_PASSWORD")
    with pytest.raises(ValueError, match="KAFKA_PASSWORD"):
        connection_options(security)
    monkeypatch.setenv("KAFKA_PASSWORD", "secret")
    assert connection_options(security)["sasl_plain_password"] == "secret"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"protocol": "SASL_SSL", "username": "gateway"}, "password"),
        ({"protocol": "SASL_SSL", **LOGIN, "password_env": "KAFKA_PASSWORD"}, "either"),
        ({"protocol": "SASL_PLAINTEXT", **LOGIN, "ca_file": "ca.pem"}, "no TLS"),
        ({"protocol": "SSL", "key_file": "key.pem"}, "cert_file"),
        ({"protocol": "TLS"}, "protocol"),
        ({"protocol": "SSL", "cafile": "ca.pem"}, "cafile"),
    ],
)
def test_what_does_not_fit_is_refused_without_the_password(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        KafkaSecurity.model_validate(given)
    assert "secret" not in str(refused.value)


def test_password_is_not_shown() -> None:
    assert "secret" not in repr(KafkaSecurity.model_validate(LOGIN))


def test_setting_reaches_every_connection() -> None:
    security = KafkaSecurity.model_validate({"protocol": "SASL_PLAINTEXT", **LOGIN})
    connection = Settings(_env_file=None, broker="kafka://a:1;kafka://b:2", kafka_security=security).kafka_connection
    assert connection["bootstrap_servers"] == ["a:1", "b:2"]
    assert connection["security_protocol"] == "SASL_PLAINTEXT"


def test_every_kafka_client_of_the_server_takes_the_settings() -> None:
    """A client that names its servers alone would come in without TLS and SASL."""
    own_broker = Path("streams/up/broker.py")
    exempt = (own_broker, Path("streams/settings.py"))
    sources = [
        path for folder in ("streams", "operations") for path in Path(folder).rglob("*.py") if path not in exempt
    ]
    assert [str(path) for path in sources if "bootstrap_servers=" in path.read_text()] == []
