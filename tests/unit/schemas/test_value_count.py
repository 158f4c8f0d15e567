"""Counting the values of a JSON text: prose has as many as it has, however many commas stand in it."""

import pytest

from schemas.messages.decoding import MAX_VALUES, count_values

MANY = MAX_VALUES + 1


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"1," * MANY + b"1]",
        b"[" * MANY,
        b"{" * MANY,
        b"[" + b"[]," * MANY + b"[]]",
        b'{"a":0' + b',"b":0' * MANY,
    ],
    ids=["numbers", "lists", "objects", "empty lists", "fields"],
)
def test_many_values_are_counted(text: bytes) -> None:
    assert count_values(text) > MAX_VALUES


@pytest.mark.parametrize(
    "text",
    [
        b'{"text":"' + b"Well, then, " * MANY + b'"}',
        b'{"text":"' + b'\\",[{' * MANY + b'"}',
        b'{"text":"\\\\","more":"' + b"," * MANY + b'"}',
    ],
    ids=["prose", "escaped quotes", "escaped backslash before a quote"],
)
def test_marks_within_strings_are_no_values(text: bytes) -> None:
    assert count_values(text) < 10


def test_strings_alone_may_be_too_many() -> None:
    assert count_values(b'["' + b'","' * (3 * MAX_VALUES) + b'"]') > MAX_VALUES
