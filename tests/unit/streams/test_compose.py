"""The deployment files name existing settings and the versions of the project."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway.settings import GatewaySettings
from streams.settings import Settings
from streams.up.broker import MAX_MESSAGE_BYTES, STOP_TIMEOUT_S
from streams.up.installing import locked_jars
from tests.builders.compose import compose_services

ROOT = Path(__file__).parents[3]
PREFIX = "MODESTREAM_"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return compose_services()


@pytest.fixture
def settings(services: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    monkeypatch.chdir(tmp_path)
    for name, value in services["worker"]["environment"].items():
        monkeypatch.setenv(name, str(value))
    return Settings()


def tag(services: dict[str, Any], service: str) -> str:
    return str(services[service]["image"]).partition(":")[2]


def pinned(package: str) -> str:
    found = re.search(rf"^{package}==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert found
    return found[1]


def test_every_named_setting_exists(services: dict[str, Any]) -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    named = {*services["worker"]["environment"], *re.findall(rf"{PREFIX}\w+", dockerfile)}
    assert len(named) >= 4
    fields = {*Settings.model_fields, *GatewaySettings.model_fields}
    assert {name.removeprefix(PREFIX).lower() for name in named} <= fields


def test_parts_are_built_without_a_broker(services: dict[str, Any]) -> None:
    built = {service["build"]["target"] for service in services.values() if "build" in service}
    assert built == {"worker"}


def test_gateway_has_keys_and_its_settings_exist(services: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in services["gateway"]["environment"].items():
        assert name.removeprefix(PREFIX).lower() in {*GatewaySettings.model_fields, "files"}
        monkeypatch.setenv(name, value)
    settings = GatewaySettings(_env_file=None)
    assert settings.gateway_keys is not None
    assert settings.address == ("0.0.0.0", 8080)


def test_worker_connects_to_the_advertised_listener(services: dict[str, Any], settings: Settings) -> None:
    advertised = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    assert [f"INSIDE://{server}" for server in settings.bootstrap_servers] == advertised[:1]


def test_worker_waits_until_kafka_and_qdrant_are_healthy(services: dict[str, Any], settings: Settings) -> None:
    assert urlsplit(settings.qdrant_url).hostname in services
    assert services["worker"]["depends_on"] == {
        name: {"condition": "service_healthy"} for name in services if name not in ("worker", "gateway")
    }
    assert all("healthcheck" in service for service in services.values())


def test_healthcheck_uses_the_metrics_port(services: dict[str, Any], settings: Settings) -> None:
    assert f"http://127.0.0.1:{settings.metrics_port}/live" in services["worker"]["healthcheck"]["test"][-1]


def test_data_of_the_worker_is_on_a_volume(services: dict[str, Any], settings: Settings) -> None:
    assert [volume.partition(":")[2] for volume in services["worker"]["volumes"]] == ["/files", str(settings.data_dir)]
    assert f"VOLUME {settings.data_dir}" in (ROOT / "Dockerfile").read_text()


def test_worker_and_gateway_share_the_volume_of_files(services: dict[str, Any]) -> None:
    for name in ("worker", "gateway"):
        assert "files:/files" in services[name]["volumes"]
        assert services[name]["environment"][f"{PREFIX}FILES"] == "/files"


def test_profiles_and_keys_come_from_an_optional_env_file(services: dict[str, Any]) -> None:
    assert services["worker"]["env_file"] == [{"path": ".env", "required": False}]
    assert "!.env" not in (ROOT / ".dockerignore").read_text().splitlines()
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()


def test_addresses_are_not_left_to_the_env_file(services: dict[str, Any]) -> None:
    fixed = {"BROKER", "QDRANT_URL", "DATA_DIR", "METRICS_PORT"}
    assert {f"{PREFIX}{name}" for name in fixed} <= set(services["worker"]["environment"])


def test_kafka_has_the_version_of_the_lock(services: dict[str, Any]) -> None:
    [kafka] = [jar.coordinate for jar in locked_jars() if jar.coordinate.startswith("org.apache.kafka:kafka_2.13:")]
    assert tag(services, "kafka") == kafka.rpartition(":")[2]


def test_kafka_accepts_the_largest_records(services: dict[str, Any]) -> None:
    environment = services["kafka"]["environment"]
    assert environment["KAFKA_MESSAGE_MAX_BYTES"] == environment["KAFKA_REPLICA_FETCH_MAX_BYTES"] == MAX_MESSAGE_BYTES


def test_qdrant_has_the_minor_version_of_its_client(services: dict[str, Any]) -> None:
    assert tag(services, "qdrant").removeprefix("v").split(".")[:2] == pinned("qdrant-client").split(".")[:2]


def test_python_has_the_version_of_the_lock() -> None:
    locked = re.search(r"--python-version (\S+)", (ROOT / "Makefile").read_text())
    assert locked
    images = re.findall(r"^FROM python:([\d.]+)-slim", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert images == [locked[1]] * 2


def test_stop_grace_period_covers_a_clean_end(services: dict[str, Any]) -> None:
    assert all(int(service["stop_grace_period"].removesuffix("s")) > STOP_TIMEOUT_S for service in services.values())


def test_build_context_is_what_the_image_copies() -> None:
    copied = set(re.findall(r"^COPY (?!--from)(\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    admitted = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert admitted == copied
    assert all((ROOT / name).exists() for name in copied)
