"""`Admit`: authorisation and limits."""

from typing import Any

import pytest

from agents.commands.admit import Admit
from agents.rules.access.limits import RequestLimits
from schemas.failures import Rejected
from schemas.messages.retrieval import RetrieveRequest
from schemas.state.policies import Policy
from streams.adapters.authorization.policy_file import PolicyFile


def asking(projects: Any = "default", top_k: int = 10) -> RetrieveRequest:
    """Return a retrieve request."""
    return RetrieveRequest.model_validate(
        {"scope": {"user_id": "u", "project_id": projects}, "query": "q", "top_k": top_k}
    )


def test_without_authorization_a_request_passes_as_it_is() -> None:
    request = asking("*")
    assert Admit().admit(request, "read", None) is request


@pytest.mark.parametrize(
    ("request_", "code"),
    [(asking(["p"] * 4), "selector_refused"), (asking(top_k=21), "invalid_value"), (asking(["p"] * 3, 20), None)],
)
def test_request_above_the_limits_is_rejected(request_: RetrieveRequest, code: str | None) -> None:
    admit = Admit(limits=RequestLimits(max_scopes=3, top_k=20))
    if code is None:
        assert admit.admit(request_, "read", None) is request_
        return
    with pytest.raises(Rejected, match=code):
        admit.admit(request_, "read", None)


def test_wildcard_selector_is_narrowed_to_the_grants() -> None:
    policy = Policy.model_validate({"principals": {"app": [{"user_id": "u", "project_id": ["p1"]}]}})
    admitted = Admit(PolicyFile(policy)).admit(asking("*"), "read", "app")
    assert admitted.scope.fields() == {"user_id": ("u",), "project_id": ("p1",)}
    assert admitted.query == "q"
