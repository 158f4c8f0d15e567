"""Three brokers in docker-compose.yml: a quorum, three copies of each record, addresses that all parts know."""

import re
from pathlib import Path
from typing import Any

import pytest
from dotenv import dotenv_values

from streams.settings import Settings
from tests.builders.compose import VARIABLE, compose_services

ROOT = Path(__file__).parents[3]
BROKERS = ("kafka", "kafka-2", "kafka-3")


@pytest.fixture(scope="module")
def chosen() -> dict[str, str]:
    return {name: str(value) for name, value in dotenv_values(ROOT / "deploy/compose/three-brokers.env").items()}


@pytest.fixture(scope="module")
def services(chosen: dict[str, str]) -> dict[str, Any]:
    return compose_services(chosen)


def test_one_broker_is_the_default() -> None:
    assert [name for name in compose_services() if name.startswith("kafka")] == ["kafka"]


def test_every_variable_of_the_file_is_used(chosen: dict[str, str]) -> None:
    used = {name for name, _ in VARIABLE.findall((ROOT / "docker-compose.yml").read_text())}
    assert set(chosen) == {"COMPOSE_PROFILES", *used}


def test_each_broker_is_a_voter_at_its_own_name(services: dict[str, Any]) -> None:
    voters = [f"{services[name]['environment']['KAFKA_NODE_ID']}@{name}:9093" for name in BROKERS]
    for name in BROKERS:
        assert services[name]["environment"]["KAFKA_CONTROLLER_QUORUM_VOTERS"] == ",".join(voters)


def test_brokers_share_no_volume_and_no_port(services: dict[str, Any]) -> None:
    for part in ("volumes", "ports"):
        assert len({services[name][part][0] for name in BROKERS}) == len(BROKERS)
    for name in BROKERS:
        outside = services[name]["ports"][0].removesuffix(":9092")
        assert f"OUTSIDE://{outside}" in services[name]["environment"]["KAFKA_ADVERTISED_LISTENERS"]


def test_a_record_outlives_one_broker(services: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in services["worker"]["environment"].items():
        monkeypatch.setenv(name, str(value))
    assert Settings(_env_file=None).replication_factor == len(BROKERS)
    for name in BROKERS:
        factors = {key: int(value) for key, value in services[name]["environment"].items() if "REPLICATION_F" in key}
        assert set(factors.values()) == {len(BROKERS)}
        assert int(services[name]["environment"]["KAFKA_MIN_INSYNC_REPLICAS"]) == len(BROKERS) - 1


@pytest.mark.parametrize("part", ["worker", "gateway"])
def test_worker_and_gateway_know_all_brokers(services: dict[str, Any], part: str) -> None:
    inside = [
        re.search(r"INSIDE://([^,]+)", services[name]["environment"]["KAFKA_ADVERTISED_LISTENERS"]) for name in BROKERS
    ]
    known = services[part]["environment"]["MODESTREAM_BROKER"].removeprefix("kafka://").split(";")
    assert known == [found[1] for found in inside if found]
