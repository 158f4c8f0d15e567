"""Numbers of values in a JSON text, and the nearest vectors as values."""

import numpy as np
import pytest

from schemas.messages.decoding import MAX_VALUES, count_values
from schemas.models.vectors import Nearest, ScoredPassages

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


PASSAGES = ScoredPassages(np.array([0, 1]), np.array([0, 2]), np.array([0.9, 0.5]))
FOUND = Nearest(["a", "b"], np.array([0.9, 0.5]), passages=PASSAGES)


def test_slice_has_the_best_memories() -> None:
    assert FOUND[:1].memory_ids == ["a"]


def test_slice_has_all_scored_passages() -> None:
    assert FOUND[:1].passages is PASSAGES
