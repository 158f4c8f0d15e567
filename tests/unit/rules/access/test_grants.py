"""Permissions of a policy, and narrowing of selectors."""

from typing import Any

import pytest
from pydantic import ValidationError

from agents.rules.access.grants import narrow_selector, permitted_projects, require_permission
from schemas.failures import Rejected
from schemas.scope_models import deployed_scope, selector_of
from schemas.scopes import Scope, Selector
from schemas.state.policies import Policy, policy_of
from tests.builders.scopes import AgentScope

POLICY = Policy.model_validate(
    {
        "principals": {
            "gateway": [{"user_id": "*"}],
            "ana": [
                {"user_id": "ana", "project_id": ["p1", "p2"]},
                {"user_id": "ana", "project_id": "p3", "may": ["read"]},
                {"user_id": ["ben", "cid"], "project_id": "shared", "may": ["read"]},
            ],
            "nobody": [],
        }
    }
)


def narrowed_projects(principal: str | None, user: str, projects: Any) -> tuple[str, ...] | str | None:
    try:
        narrowed = narrow_selector(
            POLICY, principal, Selector.model_validate({"user_id": user, "project_id": projects})
        )
    except Rejected as refused:
        return refused.code
    assert narrowed.user_id == user
    return narrowed.project_id


@pytest.mark.parametrize(
    ("principal", "user", "projects", "left"),
    [
        ("gateway", "anyone", "*", None),
        ("gateway", "anyone", ["a", "b"], ("a", "b")),
        ("ana", "ana", "*", ("p1", "p2", "p3")),
        ("ana", "ana", ["p3", "p9", "p1"], ("p3", "p1")),
        ("ana", "ana", "p2", ("p2",)),
        ("ana", "ana", "p9", "not_allowed"),
        ("ana", "ben", "*", ("shared",)),
        ("ana", "ben", ["p1"], "not_allowed"),
        ("ana", "dora", "*", "not_allowed"),
        ("nobody", "ana", "*", "not_allowed"),
        ("unknown", "ana", "p1", "not_allowed"),
        (None, "ana", "p1", "not_allowed"),
    ],
)
def test_selector_is_narrowed_to_readable_projects(
    principal: str | None, user: str, projects: Any, left: tuple[str, ...] | str | None
) -> None:
    assert narrowed_projects(principal, user, projects) == left


@pytest.mark.parametrize(
    ("principal", "act", "user", "project", "allowed"),
    [
        ("gateway", "manage", "anyone", "p", True),
        ("ana", "write", "ana", "p1", True),
        ("ana", "manage", "ana", "p2", True),
        ("ana", "write", "ana", "p3", False),
        ("ana", "write", "ben", "shared", False),
        (None, "write", "ana", "p1", False),
    ],
)
def test_permission_depends_on_the_grants(
    principal: str | None, act: Any, user: str, project: str, *, allowed: bool
) -> None:
    scope = Scope(user_id=user, project_id=project)
    if allowed:
        require_permission(POLICY, principal, act, scope)
        return
    with pytest.raises(Rejected, match="not_allowed"):
        require_permission(POLICY, principal, act, scope)


@pytest.mark.parametrize(
    "grant", [{}, {"user_id": ""}, {"user_id": "u", "may": ["fly"]}, {"user_id": "u", "team": "x"}, {"user_id": 7}]
)
def test_malformed_policy_is_refused(grant: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate({"principals": {"p": [grant]}})


def test_refusal_truncates_the_principal() -> None:
    with pytest.raises(Rejected) as refused:
        require_permission(POLICY, "x" * 100_000, "write", Scope(user_id="u"))
    assert len(refused.value.message) < 300


AGENTS = deployed_scope(AgentScope)
OF_AGENTS = policy_of(AGENTS).model_validate(
    {
        "principals": {
            "one": [{"user_id": "ana", "agent_id": "a1"}],
            "two": [
                {"user_id": "ana", "project_id": "p1", "agent_id": "a1"},
                {"user_id": "ana", "project_id": "p2", "agent_id": "a2"},
            ],
        }
    }
)


def narrowed_to(principal: str, **selected: Any) -> dict[str, Any] | str:
    selector = selector_of(AGENTS).model_validate({"user_id": "ana", "channel": "*", **selected})
    try:
        narrowed = narrow_selector(OF_AGENTS, principal, selector)
    except Rejected as refused:
        return refused.code
    return {name: values for name, values in narrowed.fields().items() if name in selected}


@pytest.mark.parametrize(
    ("principal", "selected", "left"),
    [
        ("one", {"agent_id": "*"}, {"agent_id": ("a1",)}),
        ("one", {"agent_id": ["a1", "a2"]}, {"agent_id": ("a1",)}),
        ("one", {"agent_id": "a2"}, "not_allowed"),
        ("two", {"project_id": "p1", "agent_id": "a1"}, {"project_id": ("p1",), "agent_id": ("a1",)}),
        ("two", {"project_id": "p1", "agent_id": "a2"}, "not_allowed"),
        ("two", {"project_id": "*", "agent_id": "*"}, "not_allowed"),
    ],
)
def test_selector_is_narrowed_to_further_fields_of_grants(
    principal: str, selected: dict[str, Any], left: dict[str, Any] | str
) -> None:
    assert narrowed_to(principal, **selected) == left


@pytest.mark.parametrize(("agent", "is_permitted"), [("a1", True), ("a2", False)])
def test_grant_of_one_agent_is_for_its_scopes_alone(agent: str, *, is_permitted: bool) -> None:
    scope = AGENTS.model_validate({"user_id": "ana", "agent_id": agent})
    try:
        require_permission(OF_AGENTS, "one", "write", scope)
    except Rejected:
        assert not is_permitted
    else:
        assert is_permitted


def test_grant_of_one_agent_is_no_grant_of_whole_projects() -> None:
    assert permitted_projects(OF_AGENTS, "one", "manage", AGENTS.model_validate({"user_id": "ana"})) == ()
