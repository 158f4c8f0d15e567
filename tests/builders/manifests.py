"""The manifests of `deploy/kubernetes`, by file, kind and name."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

KUBERNETES = Path(__file__).parents[2] / "deploy/kubernetes"

Manifest = dict[str, Any]


@cache
def kustomizations() -> dict[Path, Manifest]:
    files = sorted(KUBERNETES.rglob("kustomization.yaml"))
    return {file.parent: yaml.safe_load(file.read_text()) for file in files}


@cache
def manifests() -> list[Manifest]:
    files = [file for file in sorted(KUBERNETES.rglob("*.yaml")) if file.name != "kustomization.yaml"]
    return [manifest for file in files for manifest in yaml.safe_load_all(file.read_text())]


def of_kind(kind: str) -> dict[str, Manifest]:
    return {manifest["metadata"]["name"]: manifest for manifest in manifests() if manifest["kind"] == kind}


def workloads() -> dict[str, Manifest]:
    return of_kind("StatefulSet") | of_kind("Deployment")


def container_of(workload: str) -> Manifest:
    [container] = workloads()[workload]["spec"]["template"]["spec"]["containers"]
    found: Manifest = container
    return found


def config() -> dict[str, str]:
    [generated] = kustomizations()[KUBERNETES / "base"]["configMapGenerator"]
    return dict(literal.split("=", 1) for literal in generated["literals"])


SECRET = "a secret of more than thirty-two characters"


def environment_of(workload: str) -> dict[str, str]:
    """Return the environment of a workload's container; secrets are `SECRET`."""
    own = {variable["name"]: variable.get("value", SECRET) for variable in container_of(workload)["env"]}
    return config() | own


def pointed_at(manifest: Manifest, pointer: str) -> Any:
    """Return what a JSON pointer names. Raises LookupError."""
    found: Any = manifest
    for part in pointer.split("/")[1:]:
        found = found[int(part)] if isinstance(found, list) else found[part]
    return found


def patches() -> Iterator[tuple[Manifest, str, list[Manifest]]]:
    for kustomization in kustomizations().values():
        for patch in kustomization.get("patches", []):
            target = patch["target"]
            yield of_kind(target["kind"])[target["name"]], target["name"], yaml.safe_load(patch["patch"])
