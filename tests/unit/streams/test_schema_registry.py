"""Schemas of topics at a Schema Registry: a stand-in with the rules of Confluent's REST API."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from schemas.failures import Unavailable
from streams.api_docs import registry
from streams.api_docs.registry import RegistrationRefused, register_at_start, register_schemas, topic_schemas
from streams.settings import Settings

SETTINGS = Settings(_env_file=None)
SCHEMAS = topic_schemas(SETTINGS)
TURN = {"schema": "turn.v1", "turn_id": "t1", "scope": {"user_id": "u1"}, "conversation_id": "c1"}


@dataclass
class Registry:
    address: str = ""
    ids: dict[tuple[str, str], int] = field(default_factory=dict)
    failures: list[int] = field(default_factory=list)
    """Statuses of the next answers, in place of a registration."""

    async def register(self, request: web.Request) -> web.Response:
        body = await request.json()
        if request.content_type != "application/vnd.schemaregistry.v1+json" or body["schemaType"] != "JSON":
            return web.json_response({"error_code": 42201, "message": "Invalid schema"}, status=422)
        if self.failures:
            return web.json_response({"error_code": 409, "message": "incompatible"}, status=self.failures.pop(0))
        json.loads(body["schema"])
        key = request.match_info["subject"], body["schema"]
        return web.json_response({"id": self.ids.setdefault(key, len(self.ids) + 1)})


@pytest.fixture
async def stand_in() -> AsyncIterator[Registry]:
    stand_in = Registry()
    app = web.Application()
    app.router.add_post("/subjects/{subject}/versions", stand_in.register)
    async with TestServer(app) as server:
        stand_in.address = str(server.make_url("/"))
        yield stand_in


def is_valid(topic: str, value: Any) -> bool:
    return bool(Draft202012Validator(SCHEMAS[topic]).is_valid(value))


def test_a_turn_is_valid_on_its_topic() -> None:
    assert is_valid("memory.turns", {**TURN, "role": "user", "content": "hello"})


def test_a_turn_without_content_is_not() -> None:
    assert not is_valid("memory.turns", {**TURN, "role": "user"})


def test_a_topic_of_several_messages_takes_each() -> None:
    question = {"schema": "retrieve.v1", "scope": {"user_id": "u1"}, "query": "tea?"}
    assert is_valid("memory.retrieve", question)


def test_dead_letters_have_no_schema() -> None:
    assert "memory.dead-letters" not in SCHEMAS


def test_topics_follow_the_prefix() -> None:
    assert "acme.turns" in topic_schemas(Settings(_env_file=None, topic_prefix="acme."))


async def test_a_subject_is_that_of_the_value_of_a_topic(stand_in: Registry) -> None:
    ids = await register_schemas(stand_in.address, SCHEMAS)
    assert set(ids) == {f"{topic}-value" for topic in SCHEMAS}


async def test_registered_twice_is_registered_once(stand_in: Registry) -> None:
    first = await register_schemas(stand_in.address, SCHEMAS)
    assert await register_schemas(stand_in.address, topic_schemas(SETTINGS)) == first


async def test_an_incompatible_schema_is_refused_with_its_subject(stand_in: Registry) -> None:
    stand_in.failures = [409]
    with pytest.raises(RegistrationRefused, match=r"memory\..*-value: status 409: .*incompatible"):
        await register_schemas(stand_in.address, SCHEMAS)


async def test_a_registry_that_fails_is_unavailable(stand_in: Registry) -> None:
    stand_in.failures = [503]
    with pytest.raises(Unavailable):
        await register_schemas(stand_in.address, SCHEMAS)


async def test_a_registry_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable):
        await register_schemas("http://127.0.0.1:9", SCHEMAS)


async def test_a_worker_registers_once_the_registry_answers(
    stand_in: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "RETRY_S", 0.01)
    stand_in.failures = [503, 500, 429]
    await asyncio.wait_for(register_at_start(stand_in.address, SETTINGS), timeout=30)
    assert len(stand_in.ids) == len(SCHEMAS)


async def test_a_worker_goes_on_after_a_refusal(stand_in: Registry) -> None:
    stand_in.failures = [409]
    await asyncio.wait_for(register_at_start(stand_in.address, SETTINGS), timeout=30)
    assert stand_in.ids == {}


def documented_columns(table: str, statement: str) -> set[str]:
    """Return the names of the columns of a `CREATE` statement in the documentation, without those of Kafka."""
    page = (Path(__file__).parents[3] / "docs/kafka.md").read_text()
    [columns] = re.findall(rf"CREATE {statement} {table} \((.*?)\)\s+WITH", page, re.DOTALL)[:1]
    names = re.findall(r"(?:^|,)\s*(\w+) (?:STRING|INT|STRUCT|ROW)", re.sub(r"<.*?>", "", columns))
    return set(names) - {"user"}


@pytest.mark.parametrize(
    ("table", "statement", "topic"),
    [
        ("users", "TABLE", "memory.boundaries"),
        ("turns", "STREAM", "memory.turns"),
        ("receipts", "TABLE", "memory.receipts"),
    ],
)
def test_columns_of_the_documented_statements_are_fields(table: str, statement: str, topic: str) -> None:
    [message] = SCHEMAS[topic]["oneOf"]
    fields = SCHEMAS[topic]["$defs"][message["$ref"].rpartition("/")[2]]["properties"]
    columns = documented_columns(table, statement)
    assert columns - set(fields) == set()
