"""Decoding of records into messages, or into errors of the contract with their fields."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from schemas.failures import Rejected
from schemas.messages.assemble import AssembleRequest
from schemas.messages.commands import Command
from schemas.messages.decoding import decode
from schemas.messages.retrieval import RetrieveRequest
from schemas.messages.turns import MAX_METADATA_BYTES, MAX_METADATA_DEPTH, MAX_RESOURCES, Turn
from tests.builders.turns import as_bytes, turn_fields

KINDS = {"turn.v1": Turn}
MESSAGES: dict[str, type[Any]] = {
    "turn.v1": Turn,
    "retrieve.v1": RetrieveRequest,
    "assemble.v1": AssembleRequest,
    "command.v1": Command,
}
COMMAND = {"scope": {"user_id": "u1"}, "command": "set_memory_mode"}
VALID = as_bytes(turn_fields())


def scoped(**changes: Any) -> dict[str, Any]:
    return turn_fields(scope={"user_id": "u1", "project_id": "p1"} | changes)


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in turn_fields().items() if key != name}


def nested(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


BAD: dict[str, tuple[Any, str, str | None]] = {
    "broken json": (VALID[:-9], "invalid_json", None),
    "empty value": (b"", "invalid_json", None),
    "no value": (None, "invalid_json", None),
    "not utf-8": (VALID[:-1] + b',"a":"\xff\xfe"}', "invalid_json", None),
    "utf-16": (VALID.decode().encode("utf-16"), "invalid_json", None),
    "null": (b"null", "invalid_json", None),
    "a list": (b"[]", "invalid_json", None),
    "a string": (b'"turn"', "invalid_json", None),
    "a number": (b"17", "invalid_json", None),
    "a lone surrogate": (VALID[:-1] + b',"speaker":"\\ud800"}', "invalid_json", None),
    "NaN in metadata": (VALID[:-1] + b',"metadata":{"a":NaN}}', "invalid_json", None),
    "nested without end": (b"[" * 100_000, "invalid_json", None),
    "two objects": (VALID + VALID, "invalid_json", None),
    "no schema": (without("schema"), "unknown_schema", "schema"),
    "schema is a number": (turn_fields(schema=1), "unknown_schema", "schema"),
    "unknown version": (turn_fields(schema="turn.v999"), "unknown_schema", "schema"),
    "unknown kind": (turn_fields(schema="tweet.v1"), "unknown_schema", "schema"),
    "the kind of another topic": (turn_fields(schema="retrieve.v1"), "unknown_schema", "schema"),
    "no scope": (without("scope"), "invalid_value", "scope"),
    "no conversation_id": (without("conversation_id"), "invalid_value", "conversation_id"),
    "no role": (without("role"), "invalid_value", "role"),
    "no content": (without("content"), "invalid_value", "content"),
    "unknown role": (turn_fields(role="robot"), "invalid_value", "role"),
    "content is a number": (turn_fields(content=17), "invalid_value", "content"),
    "content is empty": (turn_fields(content=""), "invalid_value", "content"),
    "content is too large": (turn_fields(content="x" * 32769), "too_large", "content"),
    "turn_id is a number": (turn_fields(turn_id=17), "invalid_value", "turn_id"),
    "turn_id is empty": (turn_fields(turn_id=""), "invalid_value", "turn_id"),
    "turn_id is too long": (turn_fields(turn_id="t" * 513), "too_large", "turn_id"),
    "importance above one": (turn_fields(importance=1.5), "invalid_value", "importance"),
    "importance is a word": (turn_fields(importance="high"), "invalid_value", "importance"),
    "importance has 400 digits": (turn_fields(importance=10**400), "invalid_value", "importance"),
    "occurred_at is no time": (turn_fields(occurred_at="yesterday"), "invalid_value", "occurred_at"),
    "occurred_at is a number": (turn_fields(occurred_at=1_772_357_400), "invalid_value", "occurred_at"),
    "occurred_at is digits": (turn_fields(occurred_at="1772357400"), "invalid_value", "occurred_at"),
    "occurred_at has no zone": (turn_fields(occurred_at="2026-03-01T09:30:00"), "invalid_value", "occurred_at"),
    "before the first year": (turn_fields(occurred_at="0001-01-01T00:00:00+14:00"), "invalid_value", "occurred_at"),
    "after the last year": (turn_fields(occurred_at="9999-12-31T23:59:59-12:00"), "invalid_value", "occurred_at"),
    "resources is no list": (turn_fields(resources="a.png"), "invalid_value", "resources"),
    "too many resources": (turn_fields(resources=[{"uri": "a"}] * (MAX_RESOURCES + 1)), "too_large", "resources"),
    "a resource without uri": (turn_fields(resources=[{"text": "b"}]), "invalid_value", "resources.0.uri"),
    "a media type that is too long": (
        turn_fields(resources=[{"uri": "a", "media_type": "x" * 256}]),
        "too_large",
        "resources",
    ),
    "a hash that is too long": (turn_fields(resources=[{"uri": "a", "sha256": "x" * 256}]), "too_large", "resources"),
    "metadata is no object": (turn_fields(metadata=["a"]), "invalid_value", "metadata"),
    "metadata too deep": (turn_fields(metadata={"a": nested(MAX_METADATA_DEPTH)}), "invalid_value", "metadata"),
    "metadata too large": (turn_fields(metadata={"a": "x" * MAX_METADATA_BYTES}), "too_large", "metadata"),
    "numbers that grow": (VALID[:-1] + b',"metadata":{"a":[' + b"1e15," * 60_000 + b"1]}}", "too_large", "metadata"),
    "scope is a word": (turn_fields(scope="u1"), "invalid_value", "scope"),
    "scope has an unknown field": (scoped(team="x"), "unknown_scope_field", "scope.team"),
    "scope without user": (turn_fields(scope={"project_id": "p1"}), "invalid_value", "scope.user_id"),
    "user is empty": (scoped(user_id=""), "invalid_value", "scope.user_id"),
    "user is a star": (scoped(user_id="*"), "invalid_value", "scope.user_id"),
    "user is too long": (scoped(user_id="u" * 257), "invalid_value", "scope.user_id"),
    "user has a control character": (scoped(user_id="u\x07"), "invalid_value", "scope.user_id"),
    "project is a star": (scoped(project_id="*"), "invalid_value", "scope.project_id"),
    "project is a list": (scoped(project_id=["p1"]), "invalid_value", "scope.project_id"),
    "null for what must be there": (turn_fields(content=None, metadata=None), "invalid_value", "content"),
    "a scope of many fields": (scoped(**{f"f{n}": 1 for n in range(100)}), "unknown_scope_field", "scope"),
    "a null user": (scoped(user_id=None), "invalid_value", "scope.user_id"),
    "a null in an unknown field of the scope": (scoped(team=None), "unknown_scope_field", "scope.team"),
    "a null beside an error": (turn_fields(metadata=None, role="robot"), "invalid_value", "role"),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_message_is_refused_with_code_and_field(name: str) -> None:
    value, code, field = BAD[name]
    with pytest.raises(Rejected) as refused:
        decode(None if value is None else as_bytes(value), KINDS)
    assert refused.value.code == code
    assert refused.value.field == field
    assert refused.value.message


GOOD: dict[str, dict[str, Any]] = {
    "the longest content": {"content": "\U0001f600" * 32768},
    "an unknown field": {"mood": {"deep": [1, 2]}},
    "ids of 512 characters": {"turn_id": "t" * 512, "conversation_id": "c" * 512},
    "control characters in ids": {"turn_id": "\x00\x1b", "conversation_id": "\x00", "speaker": "\x7f\n"},
    "an empty speaker": {"speaker": ""},
    "a number of 400 digits": {"metadata": {"a": 10**400}},
    "metadata that names a prototype": {"metadata": {"__proto__": {"x": 1}, "": None}},
    "metadata as deep as may be": {"metadata": {"a": nested(MAX_METADATA_DEPTH - 1)}},
    "as many resources as may be": {"resources": [{"uri": "a", "text": "b"}] * MAX_RESOURCES},
    "importance as a whole number": {"importance": 1},
    "the first moment": {"occurred_at": "0001-01-01T00:00:00Z"},
    "the last moment": {"occurred_at": "9999-12-31T23:59:59.999999Z"},
}


@pytest.mark.parametrize("name", GOOD)
def test_unusual_valid_message_is_unchanged(name: str) -> None:
    turn = decode(as_bytes(turn_fields(**GOOD[name])), KINDS)
    told = turn.model_dump(mode="json")
    for field in GOOD[name].keys() & told.keys() - {"resources", "occurred_at"}:
        assert told[field] == GOOD[name][field]
    assert len(turn.resources) == len(GOOD[name].get("resources", []))


OPTIONAL = ("turn_id", "speaker", "occurred_at", "mode", "importance", "resources", "metadata")


def test_null_equals_an_omitted_field() -> None:
    fields = {name: value for name, value in turn_fields().items() if name not in OPTIONAL} | {
        "scope": {"user_id": "u"}
    }
    nulls = fields | dict.fromkeys(OPTIONAL) | {"scope": {"user_id": "u", "project_id": None}}
    assert decode(as_bytes(nulls), KINDS) == decode(as_bytes(fields), KINDS)
    asked = {"schema": "retrieve.v1", "scope": {"user_id": "u"}, "query": "q"}
    optional = RetrieveRequest.model_fields.keys() - asked.keys()
    kinds = {"retrieve.v1": RetrieveRequest}
    assert decode(as_bytes(asked | dict.fromkeys(optional)), kinds) == decode(as_bytes(asked), kinds)
    given = {"schema": "command.v1", "scope": {"user_id": "u"}, "command": "health", "arguments": None}
    assert decode(as_bytes(given), {"command.v1": Command}).arguments == {}


def test_omitted_project_is_default() -> None:
    assert decode(as_bytes(turn_fields(scope={"user_id": "u"})), KINDS).scope.project_id == "default"


def test_unknown_schema_error_names_the_known_ones() -> None:
    with pytest.raises(Rejected, match=r"turn\.v1"):
        decode(b'{"schema":"tweet.v1"}', KINDS)


@pytest.mark.parametrize(
    "make",
    [lambda name: {"schema": name}, lambda name: scoped(**{name: 1}), lambda name: turn_fields(resources=[{name: 1}])],
)
def test_long_field_name_is_truncated_in_the_error(make: Callable[[str], dict[str, Any]]) -> None:
    with pytest.raises(Rejected) as refused:
        decode(as_bytes(make("x" * 1_000_000)), KINDS)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("scope", "code", "field"),
    [
        ({"user_id": "u", "project_id": "*"}, None, None),
        ({"user_id": "*"}, "selector_refused", "scope.user_id"),
        ({"user_id": ["u", "v"]}, "selector_refused", "scope.user_id"),
        ({"user_id": "u", "project_id": []}, "invalid_value", "scope.project_id"),
        ({"user_id": "u", "project_id": 7}, "invalid_value", "scope.project_id.0"),
        ({"user_id": "u", "project_id": ["p", "*"]}, "invalid_value", "scope.project_id.1"),
        ({"user_id": "u", "project_id": [["p"]]}, "invalid_value", "scope.project_id.0"),
        ({"user_id": ""}, "invalid_value", "scope.user_id"),
        ({"user_id": "u", "team": "x"}, "unknown_scope_field", "scope.team"),
        ({}, "invalid_value", "scope.user_id"),
    ],
)
def test_selector_names_one_user_and_any_projects(scope: dict[str, Any], code: str | None, field: str | None) -> None:
    value = as_bytes({"schema": "retrieve.v1", "scope": scope, "query": "q"})
    if code is None:
        assert decode(value, {"retrieve.v1": RetrieveRequest}).scope.fields()["project_id"] is None
        return
    with pytest.raises(Rejected) as refused:
        decode(value, {"retrieve.v1": RetrieveRequest})
    assert refused.value.code == code
    assert refused.value.field == field


@pytest.mark.parametrize(("asked", "read"), [("p", ("p",)), (["p", "q"], ("p", "q")), ("*", None)])
def test_selector_accepts_one_some_or_all_projects(asked: object, read: tuple[str, ...] | None) -> None:
    value = as_bytes({"schema": "retrieve.v1", "scope": {"user_id": "u", "project_id": asked}, "query": "q"})
    assert decode(value, {"retrieve.v1": RetrieveRequest}).scope.fields()["project_id"] == read


ASKED = {"scope": {"user_id": "u1"}, "query": "q"}
MANY = [1] * 200_000


@pytest.mark.parametrize(
    ("kind", "fields", "code", "field"),
    [
        ("retrieve.v1", ASKED | {"mode": MANY}, "too_large", "mode"),
        ("retrieve.v1", ASKED | {"types": MANY}, "too_large", "types"),
        (
            "retrieve.v1",
            ASKED | {"scope": {"user_id": "u1", "project_id": MANY}},
            "selector_refused",
            "scope.project_id",
        ),
        ("assemble.v1", ASKED | {"messages": MANY}, "too_large", "messages"),
        ("turn.v1", turn_fields(resources=MANY), "too_large", "resources"),
        ("turn.v1", turn_fields(metadata={"a": [{"b": 1}] * 200_000}), "too_large", "metadata"),
        ("command.v1", COMMAND | {"arguments": {"memory_ids": MANY * 3}}, "too_large", "arguments"),
    ],
)
def test_message_of_far_too_many_values_is_refused_before_they_are_looked_at(
    kind: str, fields: dict[str, Any], code: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MESSAGES[kind], "model_validate_json", lambda _: pytest.fail("looked at"))
    with pytest.raises(Rejected) as refused:
        decode(as_bytes(fields | {"schema": kind}), MESSAGES)
    assert refused.value.code == code
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("retrieve.v1", ASKED | {"mode": [1] * 9000}),
        ("retrieve.v1", ASKED | {"types": [1] * 9000}),
        ("retrieve.v1", ASKED | {"scope": {"user_id": "u1", "project_id": [1] * 90_000}}),
        ("assemble.v1", ASKED | {"pins": [1] * 1000}),
        ("turn.v1", turn_fields(resources=[1] * 9000)),
    ],
)
def test_validation_of_a_list_ends_at_its_first_error(kind: str, fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        MESSAGES[kind].model_validate_json(as_bytes(fields))
    assert refused.value.error_count() <= 2


def test_unknown_field_may_be_as_large_as_its_record() -> None:
    assert decode(as_bytes(turn_fields(mine=MANY)), KINDS).content
