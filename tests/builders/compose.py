"""The services of docker-compose.yml, as Compose reads them with an environment."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]

VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


def compose_services(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    values = environment or {}
    text = VARIABLE.sub(lambda found: values.get(found[1], found[2]), (ROOT / "docker-compose.yml").read_text())
    profiles = set(values.get("COMPOSE_PROFILES", "").split(","))
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    return {
        name: service
        for name, service in services.items()
        if "profiles" not in service or profiles & set(service["profiles"])
    }
