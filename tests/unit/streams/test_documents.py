"""The API documents are complete, valid, and equal to their models."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator  # type: ignore[import-untyped]

from schemas.failures import Rejected
from schemas.messages.records import Record
from schemas.messages.replies import SuccessReply, encode_error
from schemas.messages.turns import TurnAccepted
from schemas.moments import moment_of
from schemas.version import VERSION
from streams.api_docs.asyncapi import build_asyncapi, build_json_schemas, dead_letter_headers, request_headers
from streams.settings import Settings
from streams.wire.dead_letters import dead_letter
from streams.wire.reply_address import deadline_ms, parse_reply_address, with_reply_partition
from tests.stream.pipeline.test_topology import FOR_OUTSIDE, FROM_OUTSIDE

ROOT = Path(__file__).parents[3]

SETTINGS = Settings(_env_file=None)

DOCUMENT = build_asyncapi(SETTINGS)

SCHEMAS = build_json_schemas(SETTINGS)

TURN: dict[str, Any] = {
    "schema": "turn.v1",
    "turn_id": "t-17",
    "scope": {"user_id": "u1", "project_id": "p1"},
    "conversation_id": "c1",
    "role": "user",
    "content": "The deploy target is fly.io now.",
    "occurred_at": "2026-03-01T09:30:00Z",
    "resources": [{"uri": "s3://bucket/a.png", "media_type": "image/png", "sha256": None, "text": "a caption"}],
    "later": "unknown fields are ignored",
}

QUESTION: dict[str, Any] = {
    "schema": "retrieve.v1",
    "scope": {"user_id": "u1", "project_id": ["p1", "p2"]},
    "query": "where do we deploy?",
}

LIST: dict[str, Any] = {"schema": "list.v1", "scope": {"user_id": "u1", "project_id": "*"}, "what": "memories"}
FORGET: dict[str, Any] = {"schema": "command.v1", "command": "forget", "scope": {"user_id": "u1"}}


def is_valid(schema: str, value: Any) -> bool:
    """True if both documents accept a value of `schema`; fails if they differ."""
    [named] = [entry for entry in DOCUMENT["components"]["schemas"] if entry == schema.replace(".", "_")]
    in_document = {"$ref": f"#/components/schemas/{named}", "components": DOCUMENT["components"]}
    verdicts = {bool(Draft202012Validator(each).is_valid(value)) for each in (SCHEMAS[schema], in_document)}
    [verdict] = verdicts
    return verdict


def references(node: Any) -> Iterator[str]:
    for name, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if name == "$ref":
            yield value
        else:
            yield from references(value)


def found_at(document: Any, reference: str) -> Any:
    """Resolve a local reference; KeyError if it names nothing."""
    root, *steps = reference.split("/")
    assert root == "#"
    for step in steps:
        document = document[step]
    return document


def test_every_reference_resolves() -> None:
    every = set(references(DOCUMENT))
    assert len(every) > 50
    for reference in every:
        assert found_at(DOCUMENT, reference) is not None


def test_every_schema_is_valid_in_both_drafts() -> None:
    for schema in (*DOCUMENT["components"]["schemas"].values(), *SCHEMAS.values()):
        Draft7Validator.check_schema(schema)
        Draft202012Validator.check_schema(schema)


def test_channels_are_the_public_topics_and_the_reply_address() -> None:
    public = {SETTINGS.topic_prefix + topic for topic in FROM_OUTSIDE | FOR_OUTSIDE}
    assert {channel["address"] for channel in DOCUMENT["channels"].values()} == {*public, None}


def test_every_message_has_an_operation_and_every_request_a_reply() -> None:
    operations = DOCUMENT["operations"].values()
    in_operations = {message["$ref"] for operation in operations for message in operation["messages"]}
    in_operations |= {
        message["$ref"] for operation in operations for message in operation.get("reply", {}).get("messages", ())
    }
    in_channels = {
        f"#/channels/{name}/messages/{message}"
        for name, it in DOCUMENT["channels"].items()
        for message in it["messages"]
    }
    assert in_operations == in_channels
    received = {name for name, operation in DOCUMENT["operations"].items() if operation["action"] == "receive"}
    assert received == {
        "turn", "retrieve", "assemble", "answer", "list", "map", "command", "retrieve_command", "consolidate",
    }  # fmt: skip
    for name in received:
        [reply] = DOCUMENT["operations"][name]["reply"]["messages"]
        assert reply["$ref"].endswith(f"/{name.removeprefix('retrieve_')}.v1.reply")


def test_topics_and_partitions_follow_the_settings() -> None:
    named = build_asyncapi(Settings(topic_prefix="mine.", partitions=9, replication_factor=3, _env_file=None))
    turns = named["channels"]["turns"]
    assert turns["address"] == turns["bindings"]["kafka"]["topic"] == "mine.turns"
    assert turns["bindings"]["kafka"]["partitions"] == 9
    assert turns["bindings"]["kafka"]["replicas"] == 3
    [reply_to] = [named["components"]["schemas"]["request-headers"]["properties"]["reply_to"]]
    assert Draft202012Validator(reply_to).is_valid("mine.replies.me")
    assert not Draft202012Validator(reply_to).is_valid("memory.replies")


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("turn.v1", TURN),
        ("turn.v1", {**TURN, "mode": None, "importance": 0.5, "metadata": {"a": [1]}}),
        ("retrieve.v1", QUESTION),
        ("retrieve.v1", {**QUESTION, "scope": {"user_id": "u1", "project_id": "*"}, "mode": ["a", "b"]}),
        ("list.v1", LIST),
        ("list.v1", {**LIST, "mode": "*", "cursor": None, "types": None, "limit": 500, "contains": "tea"}),
        ("command.v1", {**FORGET, "arguments": {"user": True}}),
        ("command.v1", {**FORGET, "command": "list_modes"}),
        ("command.v1", {**FORGET, "command": "backfill"}),
        ("consolidate.v1", {"schema": "consolidate.v1", "scope": {"user_id": "u1"}, "mode": None}),
    ],
)
def test_message_of_the_contract_is_valid(schema: str, message: Any) -> None:
    assert is_valid(schema, message)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("list.v1", {**LIST, "what": "secrets"}),
        ("list.v1", {**LIST, "limit": 501}),
        ("turn.v1", {**TURN, "schema": "turn.v2"}),
        ("turn.v1", {name: value for name, value in TURN.items() if name != "schema"}),
        ("turn.v1", {**TURN, "content": ""}),
        ("turn.v1", {**TURN, "role": "robot"}),
        ("turn.v1", {**TURN, "importance": 2}),
        ("turn.v1", {**TURN, "scope": {"user_id": "*"}}),
        ("turn.v1", {**TURN, "scope": {"user_id": "a\u0000b"}}),
        ("turn.v1", {**TURN, "scope": {"user_id": "u1", "tenant": "t"}}),
        ("retrieve.v1", {**QUESTION, "scope": {"user_id": ["u1"]}}),
        ("retrieve.v1", {**QUESTION, "scope": {"user_id": "u1", "project_id": []}}),
        ("retrieve.v1", {**QUESTION, "top_k": 101}),
        ("command.v1", {**FORGET, "command": "remember"}),
        ("command.v1", {**FORGET, "command": "declare_mode", "arguments": {"name": "journal"}}),
        ("command.v1", {**FORGET, "command": "rename_mode", "arguments": {"name": "a", "new_name": "B!"}}),
    ],
)
def test_message_that_breaks_the_contract_is_invalid(schema: str, message: Any) -> None:
    assert not is_valid(schema, message)


def test_serialised_replies_are_valid_for_their_kind_of_request() -> None:
    accepted = TurnAccepted(
        memory_id="m", turn_id="t", mode="general", mode_source="fallback", version=1, duplicate=False
    )
    reply = json.loads(SuccessReply(accepted).encode())
    refused = json.loads(encode_error(Rejected("conflict", "There is one.", "arguments.new_name")))
    assert is_valid("turn.v1.reply", reply)
    assert is_valid("reply.v1", reply)
    assert not is_valid("retrieve.v1.reply", reply)
    assert not is_valid("turn.v1.reply", {**reply, "status": "error"})
    assert all(is_valid(name, refused) for name in SCHEMAS if name.endswith(".reply"))
    refused["error"]["code"] = "something"
    assert not is_valid("reply.v1", refused)


@pytest.mark.parametrize(
    ("headers", "is_taken"),
    [
        (
            {"reply_to": "memory.replies", "correlation_id": "c", "reply_partition": "3", "deadline": "1772357400000"},
            True,
        ),
        ({"reply_to": "memory.replies.me"}, True),
        ({"kafka_replyTopic": "memory.replies", "kafka_replyPartition": "\0\0\0\1"}, True),
        ({"reply_to": "elsewhere"}, False),
        ({"REPLY_TOPIC": "memory.replies."}, False),
        ({"REPLY_TOPIC": "memory.repliesx"}, False),
        ({"reply_to": "memory.replies", "reply_partition": "three"}, False),
        ({"deadline": "1e3"}, False),
    ],
)
def test_described_headers_match_the_parser(headers: dict[str, str], *, is_taken: bool) -> None:
    record = Record(
        "memory.turns", 0, 0, 0, None, None, tuple((name, value.encode()) for name, value in headers.items())
    )
    assert Draft202012Validator(request_headers("memory.replies")).is_valid(headers) == is_taken
    assert reads(record) == is_taken


def reads(record: Record) -> bool:
    try:
        with_reply_partition(parse_reply_address(record, "memory.replies"), record)
        deadline_ms(record)
    except Rejected:
        return False
    return True


def test_dead_letter_has_the_described_headers() -> None:
    record = Record("memory.turns", 1, 7, 0, b"u1", b"nonsense", (("mine", b"x"),))
    letter = dead_letter("memory.dead-letters", record, Rejected("invalid_json", "no"), moment_of(0))
    written = {name: (value or b"").decode() for name, value in letter.headers}
    assert Draft202012Validator(dead_letter_headers()).is_valid(written)
    assert {*written} - {"mine"} == {*dead_letter_headers()["properties"]}


def test_version_is_that_of_the_project() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION


@pytest.mark.parametrize("command", ["asyncapi", "schemas"])
def test_command_prints_the_same_document_and_writes_no_files(command: str, tmp_path: Path) -> None:
    # Another order of sets than in this process.
    printed = run(command, tmp_path, PYTHONHASHSEED="1").stdout
    assert printed == json.dumps({"asyncapi": DOCUMENT, "schemas": SCHEMAS}[command], indent=2, sort_keys=True) + "\n"
    assert not [*tmp_path.iterdir()]


def run(command: str, directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a directory with this environment only."""
    shared = {name: os.environ[name] for name in ("PATH", "PYTHONPYCACHEPREFIX") if name in os.environ}
    known = {**shared, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return subprocess.run(
        [sys.executable, "-m", "streams", command], cwd=directory, env=known, capture_output=True, text=True, check=True
    )
