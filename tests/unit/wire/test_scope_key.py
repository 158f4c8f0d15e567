"""The boundary of a record before it is decoded."""

import pytest

from streams.wire.scope_key import boundary_in
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
