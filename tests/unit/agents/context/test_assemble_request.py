import json
from typing import Any

import pytest
from modestream_client.vocabulary import DEFAULT_BUDGET_TOKENS

from schemas.failures import Rejected
from schemas.messages.assemble import AssembleRequest
from schemas.messages.decoding import decode

LEAST = {"schema": "assemble.v1", "scope": {"user_id": "ana"}, "query": "and now?"}


def decoded(**fields: Any) -> AssembleRequest:
    return decode(json.dumps(LEAST | fields).encode(), {"assemble.v1": AssembleRequest})


def test_scope_and_a_query_are_enough() -> None:
    request = decoded()
    assert request.scope.fields() == {"user_id": ("ana",), "project_id": ("default",)}
    assert request.budget_tokens == DEFAULT_BUDGET_TOKENS
    assert request.pins == []
    assert request.interaction_mode is None


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"interaction_mode": "DREAMING"}, "invalid_value", "interaction_mode"),
        ({"budget_tokens": -1}, "invalid_value", "budget_tokens"),
        ({"budget_tokens": 299}, "invalid_value", "budget_tokens"),
        ({"budget_tokens": "many"}, "invalid_value", "budget_tokens"),
        ({"budget_tokens": 1000.5}, "invalid_value", "budget_tokens"),
        ({"query": 7}, "invalid_value", "query"),
        ({"query": ""}, "invalid_value", "query"),
        ({"pins": [7]}, "invalid_value", "pins.0"),
        ({"pins": ["x"] * 1001}, "too_large", "pins"),
        ({"system_prompt": ["x"]}, "invalid_value", "system_prompt"),
        ({"scope": {"user_id": "*"}}, "selector_refused", "scope.user_id"),
        ({"scope": {"user_id": "ana", "team": "x"}}, "unknown_scope_field", "scope.team"),
        ({"schema": "assemble.v999"}, "unknown_schema", "schema"),
    ],
    ids=str,
)
def test_bad_request_is_rejected_with_its_field(fields: dict[str, Any], code: str, field: str) -> None:
    with pytest.raises(Rejected) as refused:
        decoded(**fields)
    assert refused.value.code == code
    assert refused.value.field == field


def test_smallest_budget_and_unknown_fields_are_accepted() -> None:
    assert decoded(budget_tokens=300, flavour="vanilla").budget_tokens == 300
