"""The Helm chart is the Kustomize base with values in a few places, and renders to it.

`python -m tests.unit.deploy.test_helm` writes its templates.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from schemas.version import VERSION
from tests.builders import manifests

CHART = manifests.KUBERNETES.parent / "helm/modestream"
HELM = shutil.which("helm")
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
WORKLOADS = ("worker", "gateway")
PART_OF = {"app.kubernetes.io/part-of": "modestream"}
CHECKSUM = """\
      annotations:
        # A changed setting restarts the pods, one after another.
        checksum/settings: {{ .Values.settings | toYaml | sha256sum }}
"""


def template_of(workload: str) -> str:
    """Return the base's file with values in the places of what deployments change. Raises ValueError if one is gone."""
    values = VALUES[workload]
    resources = yaml.dump(values["resources"], sort_keys=False).replace("'", '"')
    indented = "".join(f"            {line}\n" for line in resources.splitlines())
    name = f"metadata:\n  name: modestream-{workload}\n"
    places = {
        "          image: modestream\n": "          image: {{ .Values.image.repository }}:{{ .Values.image.tag }}\n",
        f"  replicas: {values['replicas']}\n": f"  replicas: {{{{ .Values.{workload}.replicas }}}}\n",
        indented: f"            {{{{- toYaml .Values.{workload}.resources | nindent 12 }}}}\n",
        name: f"{name}  labels:\n    app.kubernetes.io/part-of: modestream\n",
        "    metadata:\n      labels:\n": f"    metadata:\n{CHECKSUM}      labels:\n",
    }
    if workload == "worker":
        places['              value: "2"\n'] = "              value: {{ .Values.worker.embeddingThreads | quote }}\n"
        places["            storage: 50Gi\n"] = "            storage: {{ .Values.worker.storage }}\n"
    else:
        places["              value: modestream-gateway\n"] = (
            "              value: {{ .Values.gateway.hosts | quote }}\n"
        )
    text = (manifests.KUBERNETES / f"base/{workload}.yaml").read_text()
    for place, value in places.items():
        if place not in text:
            raise ValueError(f"base/{workload}.yaml has no longer: {place}")
        text = text.replace(place, value)
    return text


@pytest.mark.parametrize("workload", WORKLOADS)
def test_templates_are_the_base_with_values(workload: str) -> None:
    assert (CHART / f"templates/{workload}.yaml").read_text() == template_of(workload)


def test_settings_are_those_of_the_base() -> None:
    assert VALUES["settings"] == manifests.config()


@pytest.mark.parametrize("name", ["version", "appVersion"])
def test_version_is_that_of_the_project(name: str) -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())[name] == VERSION


def rendered(*options: str) -> dict[tuple[str, str], dict[str, Any]]:
    command = [str(HELM), "template", "memory", str(CHART), *options]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(output)}


def base_objects() -> dict[tuple[str, str], dict[str, Any]]:
    files = [manifests.KUBERNETES / f"base/{workload}.yaml" for workload in WORKLOADS]
    each = [manifest for file in files for manifest in yaml.safe_load_all(file.read_text())]
    return {(manifest["kind"], manifest["metadata"]["name"]): manifest for manifest in each}


with_helm = pytest.mark.skipif(HELM is None, reason="helm is not installed")


@with_helm
def test_helm_renders_the_base() -> None:
    objects = rendered()
    del objects["ConfigMap", "modestream"]
    for manifest in objects.values():
        assert manifest["metadata"].pop("labels") == PART_OF
        manifest["spec"].get("template", {"metadata": {}})["metadata"].pop("annotations", None)
    expected = base_objects()
    for workload in manifests.workloads().values():
        key = workload["kind"], workload["metadata"]["name"]
        expected[key]["spec"]["template"]["spec"]["containers"][0]["image"] = f"modestream:{VERSION}"
    assert objects == expected


@with_helm
def test_a_changed_setting_restarts_the_pods() -> None:
    changed = rendered("--set", "settings.MODESTREAM_RERANK=true")["StatefulSet", "modestream-worker"]
    assert changed["spec"]["template"] != rendered()["StatefulSet", "modestream-worker"]["spec"]["template"]


if __name__ == "__main__":
    for workload in WORKLOADS:
        Path(CHART / f"templates/{workload}.yaml").write_text(template_of(workload))
