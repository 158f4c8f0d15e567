"""The OpenAPI document: whole, and not changed silently. `python -m tests.unit.gateway.test_document` writes it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from gateway.http.app import create_app
from gateway.openai.memory import Outbox
from gateway.openai.provider import Provider
from gateway.openai.routes import OpenAiDoor
from gateway.service.meters import Meters
from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import always_ready

COMMITTED = Path(__file__).parents[3] / "docs" / "openapi.json"


@cache
def document() -> dict[str, Any]:
    service, meters = MemoryService(FakeWire()), Meters()
    openai = OpenAiDoor(service, Provider(None), Outbox(meters), meters)
    return create_app(service, always_ready, routes=openai.routes).openapi()


def operations() -> list[dict[str, Any]]:
    return [operation for item in document()["paths"].values() for operation in item.values()]


def test_the_committed_document_is_the_served_one() -> None:
    assert json.loads(COMMITTED.read_text()) == document(), "docs/openapi.json is old: run this module to write it"


def test_every_operation_has_a_name_of_its_own_and_a_problem() -> None:
    names = [operation["operationId"] for operation in operations()]
    assert len(names) == len(set(names))
    assert all("default" in operation["responses"] for operation in operations())


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(document())
    components = document()["components"]
    for part in text.split('"$ref": "#/components/')[1:]:
        kind, name = part.partition('"')[0].split("/")
        assert name in components[kind]


def test_examples_are_valid() -> None:
    whole = document()
    for name, schema in whole["components"]["schemas"].items():
        validator = Draft202012Validator({**schema, "components": whole["components"]})
        for example in schema.get("examples", ()):
            assert not list(validator.iter_errors(example)), name


def test_bodies_say_that_a_null_leaves_an_optional_field_out() -> None:
    schemas = document()["components"]["schemas"]
    for name in (schema for schema in schemas if schema.endswith("Body")):
        for field, schema in schemas[name]["properties"].items():
            is_required = field in schemas[name].get("required", ())
            assert is_required or {"type": "null"} in schema["anyOf"], (name, field)


async def test_it_is_served(http: httpx.AsyncClient) -> None:
    assert (await http.get("/openapi.json")).json()["openapi"].startswith("3.1")


if __name__ == "__main__":
    COMMITTED.write_text(json.dumps(document(), indent=1, sort_keys=True, ensure_ascii=False) + "\n")
