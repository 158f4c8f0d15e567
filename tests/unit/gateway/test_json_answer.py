"""JSON answers keep what a sender may have stored."""

import json
from typing import Any

import pytest

from gateway.http.calls import JSONAnswer

NESTED: dict[str, Any] = {}
for _ in range(150):
    NESTED = {"a": NESTED}


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 2**200, 1e-7, 1e22, 0.1, "\x7f\u2028é\0", NESTED])
def test_stored_value_is_answered_as_it_is(value: object) -> None:
    assert json.loads(bytes(JSONAnswer({"metadata": value}).body)) == {"metadata": value}


def test_order_of_names_is_kept() -> None:
    assert JSONAnswer({"b": 1, "a": 2}).body == b'{"b":1,"a":2}'


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_number_that_json_has_no_word_for_is_null(value: float) -> None:
    assert JSONAnswer({"metadata": value}).body == b'{"metadata":null}'
