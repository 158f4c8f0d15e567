"""The manifests of Kubernetes fit the program (settings, ports, pages, topics) and each other (labels, names)."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.http.app import AllowedHosts
from gateway.http.routes.operations import health_routes
from gateway.settings import GatewaySettings
from streams.settings import Settings
from streams.topics import group_id, topics_with_prefix
from streams.up.broker import STOP_TIMEOUT_S
from tests.builders import manifests

ROOT = Path(__file__).parents[3]
WORKER, GATEWAY = "modestream-worker", "modestream-gateway"
PREFIX = "MODESTREAM_"
WORKLOADS = (WORKER, GATEWAY)
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name, value in manifests.environment_of(WORKER).items():
        monkeypatch.setenv(name, value)
    return Settings(_env_file=None)


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> GatewaySettings:
    for name, value in manifests.environment_of(GATEWAY).items():
        monkeypatch.setenv(name, value)
    return GatewaySettings(_env_file=None)


def own_settings(workload: str) -> set[str]:
    names = {variable["name"] for variable in manifests.container_of(workload)["env"]}
    return {name.removeprefix(PREFIX).lower() for name in names if name.startswith(PREFIX)}


def test_every_named_setting_exists() -> None:
    shared = {name.removeprefix(PREFIX).lower() for name in manifests.config()}
    assert own_settings(WORKER) | shared <= set(Settings.model_fields)
    assert own_settings(GATEWAY) <= set(GatewaySettings.model_fields)


def test_kustomizations_name_the_files_that_are_there() -> None:
    for folder, kustomization in manifests.kustomizations().items():
        named = {folder / name for name in kustomization.get("resources", []) + kustomization.get("components", [])}
        assert all(path.exists() for path in named)
        assert {file for file in folder.glob("*.yaml") if file.name != "kustomization.yaml"} <= named


@pytest.mark.parametrize("kind", ["Service", "StatefulSet", "Deployment", "PodDisruptionBudget", "PodMonitor"])
def test_selectors_match_the_labels_of_their_pods(kind: str) -> None:
    found = manifests.of_kind(kind)
    assert found
    for name, manifest in found.items():
        selector = manifest["spec"]["selector"]
        assert (
            selector.get("matchLabels", selector)
            == manifests.workloads()[name]["spec"]["template"]["metadata"]["labels"]
        )


def test_network_policies_and_spread_select_pods_that_exist() -> None:
    labels = {
        name: workload["spec"]["template"]["metadata"]["labels"] for name, workload in manifests.workloads().items()
    }
    for name, policy in manifests.of_kind("NetworkPolicy").items():
        assert policy["spec"]["podSelector"]["matchLabels"] == labels[name]
    for name, workload in manifests.workloads().items():
        [spread] = workload["spec"]["template"]["spec"]["topologySpreadConstraints"]
        assert spread["labelSelector"]["matchLabels"] == labels[name]


def test_ports_are_those_of_the_settings(settings: Settings, gateway: GatewaySettings) -> None:
    assert gateway.metrics_address is not None
    assert ports(WORKER) == {"metrics": settings.metrics_port}
    assert ports(GATEWAY) == {"http": gateway.address[1], "metrics": gateway.metrics_address[1]}
    assert {settings.metrics_host, gateway.address[0], gateway.metrics_address[0]} == {"0.0.0.0"}


def ports(workload: str) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in manifests.container_of(workload)["ports"]}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_named_port_exists(workload: str) -> None:
    for probe in PROBES:
        assert manifests.container_of(workload)[probe]["httpGet"]["port"] in ports(workload)
    for port in manifests.of_kind("Service")[workload]["spec"]["ports"]:
        assert port.get("targetPort", port["name"]) in ports(workload)
    for rule in manifests.of_kind("NetworkPolicy")[workload]["spec"]["ingress"]:
        assert {port["port"] for port in rule["ports"]} <= set(ports(workload))
    assert {
        endpoint["port"] for endpoint in manifests.of_kind("PodMonitor")[workload]["spec"]["podMetricsEndpoints"]
    } <= set(ports(workload))


def test_probes_ask_for_pages_that_are_served(gateway: GatewaySettings) -> None:
    served = {getattr(route, "path", None) for route in health_routes(lambda: pytest.fail("not asked")).routes}
    monitoring = (ROOT / "streams/observability/http_server.py").read_text()
    for probe in PROBES:
        assert f'"{manifests.container_of(WORKER)[probe]["httpGet"]["path"]}"' in monitoring
        asked = manifests.container_of(GATEWAY)[probe]["httpGet"]
        assert asked["path"] in served
        [host] = [header["value"] for header in asked["httpHeaders"] if header["name"] == "Host"]
        assert AllowedHosts(gateway.gateway_hosts).admits(host)


def test_only_readiness_depends_on_other_parts() -> None:
    paths = {probe: manifests.container_of(GATEWAY)[probe]["httpGet"]["path"] for probe in PROBES}
    assert paths == {"startupProbe": "/live", "readinessProbe": "/ready", "livenessProbe": "/live"}


def test_gateway_answers_to_the_name_of_its_service(gateway: GatewaySettings) -> None:
    assert AllowedHosts(gateway.gateway_hosts).admits(GATEWAY)


def test_secrets_are_references() -> None:
    secret = {f"{PREFIX}QDRANT_API_KEY", f"{PREFIX}GATEWAY_COOKIE_SECRET", "KAFKA_PASSWORD"}
    found = [
        variable
        for workload in manifests.workloads()
        for variable in manifests.container_of(workload)["env"]
        if variable["name"] in secret
    ]
    assert {variable["name"] for variable in found} == secret
    assert all("secretKeyRef" in variable["valueFrom"] for variable in found)
    assert not secret & set(manifests.config())


def test_data_and_keys_are_on_volumes(settings: Settings, gateway: GatewaySettings) -> None:
    [data] = manifests.container_of(WORKER)["volumeMounts"]
    [claim] = manifests.workloads()[WORKER]["spec"]["volumeClaimTemplates"]
    assert str(settings.data_dir) == data["mountPath"]
    assert claim["metadata"]["name"] == data["name"]
    [keys] = manifests.container_of(GATEWAY)["volumeMounts"]
    [volume] = manifests.workloads()[GATEWAY]["spec"]["template"]["spec"]["volumes"]
    assert gateway.gateway_keys == Path(keys["mountPath"]) / volume["secret"]["items"][0]["path"]


def test_image_runs_commands_of_the_program_as_its_user() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    user = re.search(r"useradd --uid (\d+)", (ROOT / "Dockerfile").read_text())
    assert user
    for name, workload in manifests.workloads().items():
        assert manifests.container_of(name)["image"] == "modestream"
        assert f'"{manifests.container_of(name)["args"][0]}"' in (ROOT / "streams/__main__.py").read_text()
        assert workload["spec"]["template"]["spec"]["securityContext"]["runAsUser"] == int(user[1])
    tags = [image for kustomization in manifests.kustomizations().values() for image in kustomization.get("images", [])]
    assert {(image["name"], image["newTag"]) for image in tags} == {("modestream", version)}


def test_pods_have_time_for_a_clean_end_and_one_at_a_time_is_taken() -> None:
    for name, workload in manifests.workloads().items():
        assert workload["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > STOP_TIMEOUT_S
        assert manifests.of_kind("PodDisruptionBudget")[name]["spec"]["maxUnavailable"] < workload["spec"]["replicas"]


def test_workers_are_scaled_by_lag_up_to_the_partitions(settings: Settings) -> None:
    scaled = manifests.of_kind("ScaledObject")[WORKER]["spec"]
    assert scaled["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": WORKER}
    assert manifests.workloads()[WORKER]["spec"]["replicas"] <= scaled["maxReplicaCount"] == settings.partitions
    consumed = topics_with_prefix(settings.topic_prefix).consumed()
    for trigger in scaled["triggers"]:
        metadata: dict[str, Any] = trigger["metadata"]
        assert metadata["consumerGroup"] == group_id(settings)
        assert metadata["topic"] in consumed
        assert metadata["bootstrapServers"] == ",".join(settings.bootstrap_servers)


def test_jobs_have_the_names_that_the_alerts_select() -> None:
    alerts = (ROOT / "deploy/prometheus/alerts.yaml").read_text()
    for name, monitor in manifests.of_kind("PodMonitor").items():
        job = manifests.workloads()[name]["spec"]["template"]["metadata"]["labels"][monitor["spec"]["jobLabel"]]
        assert f'job="{job}"' in alerts


def test_patches_change_what_is_there() -> None:
    for target, name, operations in manifests.patches():
        for operation in operations:
            old = manifests.pointed_at(target, operation["path"])
            if isinstance(old, dict):
                assert old["name"] == operation["value"]["name"], name


def test_settings_of_the_example_are_those_of_the_base() -> None:
    [generated] = manifests.kustomizations()[manifests.KUBERNETES / "example"]["configMapGenerator"]
    assert {literal.split("=")[0] for literal in generated["literals"]} <= set(manifests.config())
