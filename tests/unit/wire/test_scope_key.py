"""The boundary of a record before it is decoded."""

import json

import pytest

from schemas.messages.decoding import MAX_VALUES
from schemas.messages.records import Record
from streams.wire.partitioning import MAX_PARSED_BYTES, boundary_in
from tests.builders.turns import record


def test_boundary_is_that_of_the_scope_whatever_the_key() -> None:
    assert boundary_in(record({"scope": {"user_id": "a/b", "project_id": "p"}}, key=b"another")) == "a%2Fb"


@pytest.mark.parametrize(
    "value",
    [None, b"", b"{", b"[]", b"null", b"7", b'"scope"', b"\xff", b"{}", b'{"scope": 7}', b'{"scope": {"user_id": 7}}',
     b'{"scope": {"user_id": null}}', b'{"scope": {"user_id": ["u"]}}'],
)  # fmt: skip
def test_record_without_a_boundary_has_an_empty_one(value: bytes | None) -> None:
    assert boundary_in(record(key=b"u1", value=value) if value is None else record(value, key=b"u1")) == ""


@pytest.mark.parametrize(
    ("scope", "boundary"), [({"user_id": "a/b", "x": [1]}, "a%2Fb"), ({"user_id": 1}, ""), ({}, "")]
)
def test_boundary_of_a_large_record_is_that_of_a_small_one(scope: dict[str, object], boundary: str) -> None:
    value = json.dumps({"scope": scope, "content": "x" * MAX_PARSED_BYTES}).encode()
    assert boundary_in(Record("memory.turns", 0, 0, 0, None, value)) == boundary


def test_record_of_too_many_values_has_no_boundary() -> None:
    value = b'{"scope":{"user_id":"u1"},"x":[' + b"1," * MAX_VALUES + b"1]}"
    assert boundary_in(Record("memory.turns", 0, 0, 0, None, value)) == ""
