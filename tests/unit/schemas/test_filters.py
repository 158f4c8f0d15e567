"""Filters of a request: what is one, and the path of what is none."""

from typing import Any

import pytest
from modestream_client.arguments import MAX_FILTER_NAMES, MAX_FILTER_VALUES, GivenFilters
from pydantic import BaseModel
from pydantic_core import to_json

from agents.ports.commands import parse_arguments
from schemas.failures import Rejected
from schemas.messages.assemble import AssembleRequest
from schemas.messages.commands import Command
from schemas.messages.decoding import decode
from schemas.messages.retrieval import ListRequest, RetrieveRequest

LEAST: dict[type[BaseModel], dict[str, Any]] = {
    RetrieveRequest: {"query": "x"},
    ListRequest: {"what": "memories"},
    AssembleRequest: {"query": "x"},
}


def decoded(model: type[BaseModel], filters: Any) -> Any:
    record = {"schema": "any.v1", "scope": {"user_id": "u1"}, "filters": filters, **LEAST[model]}
    return decode(to_json(record), {"any.v1": model})


@pytest.mark.parametrize("model", LEAST)
@pytest.mark.parametrize("filters", [None, {}, {"metadata": {}}])
def test_an_empty_object_is_none(model: type[BaseModel], filters: Any) -> None:
    assert decoded(model, filters).filters is None


def test_a_value_and_a_list_of_it_are_the_same() -> None:
    value, listed = {"speaker": "Ana", "metadata": {"n": 7}}, {"speaker": ["Ana"], "metadata": {"n": [7]}}
    assert decoded(ListRequest, value) == decoded(ListRequest, listed)


REFUSED = [
    ({"colour": "red"}, "filters.colour"),
    ({"speaker": None}, "filters.speaker"),
    ({"speaker": []}, "filters.speaker"),
    ({"speaker": ["Ana", None]}, "filters.speaker"),
    ({"speaker": 7}, "filters.speaker"),
    ({"conversation_id": {"name": "c1"}}, "filters.conversation_id"),
    ({"role": "robot"}, "filters.role"),
    ({"metadata": None}, "filters.metadata"),
    ({"metadata": {"source": None}}, "filters.metadata.source"),
    ({"metadata": {"at": {"floor": 1}}}, "filters.metadata.at"),
    ({"metadata": {"tags": [["red"]]}}, "filters.metadata.tags"),
    ("Ana", "filters"),
    ([], "filters"),
]


@pytest.mark.parametrize("model", LEAST)
@pytest.mark.parametrize(("filters", "path"), REFUSED)
def test_what_is_no_filter_is_refused_with_its_path(model: type[BaseModel], filters: Any, path: str) -> None:
    with pytest.raises(Rejected) as refused:
        decoded(model, filters)
    assert refused.value.code == "invalid_value"
    assert refused.value.field == path


@pytest.mark.parametrize(
    ("filters", "path"),
    [
        ({"speaker": ["Ana"] * MAX_FILTER_VALUES, "role": "user"}, "filters"),
        ({"metadata": {"a": [1] * MAX_FILTER_VALUES, "b": 1}}, "filters.metadata"),
        ({"metadata": {f"n{number}": 1 for number in range(MAX_FILTER_NAMES + 1)}}, "filters.metadata"),
        ({f"n{number}": 1 for number in range(MAX_FILTER_NAMES + 1)}, "filters"),
    ],
)
def test_too_many_are_refused_at_once(filters: Any, path: str) -> None:
    with pytest.raises(Rejected) as refused:
        decoded(RetrieveRequest, filters)
    assert refused.value.code == "too_large"
    assert refused.value.field == path


class FilteredCommand(BaseModel, extra="ignore", strict=True):
    filters: GivenFilters = None


def test_a_null_among_the_filters_of_a_command_is_refused_too() -> None:
    arguments = {"filters": {"speaker": None}}
    command = Command.model_validate({"command": "forget", "scope": {"user_id": "u1"}, "arguments": arguments})
    with pytest.raises(Rejected) as refused:
        parse_arguments(FilteredCommand, command)
    assert refused.value.field == "arguments.filters.speaker"
