"""`Admit`: authorisation and limits."""

from typing import Any

import pytest
from modestream_client.operations import OPERATING_COMMANDS

from agents.commands.admit import Admit
from agents.rules.access.grants import RequestLimits
from schemas.failures import Rejected
from schemas.messages.commands import Command
from schemas.messages.retrieval import RetrieveRequest
from schemas.scopes import Scope
from schemas.state.policies import OPERATOR, Policy
from streams.adapters.policy_file import PolicyFile


def asking(projects: Any = "default", top_k: int = 10) -> RetrieveRequest:
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


READS = (
    "list_modes", "get_memory", "health", "list_categories", "get_category", "get_intention", "suggest_modes",
    "suggest_categories",
)  # fmt: skip
"""The commands that need the permission `read`."""

GRANTS = {
    "reader": [{"user_id": "u", "project_id": "p1", "may": ["read"]}],
    "manager": [{"user_id": "u", "project_id": ["p1", "p2"]}],
    "owner": [{"user_id": "u"}],
    "keeper": [{"user_id": "u", "may": ["manage"]}],
}


def admitted(principal: str, command: str, project: str = "p1", /, **arguments: Any) -> Command:
    message = Command(command=command, scope=Scope(user_id="u", project_id=project), arguments=arguments)
    admit = Admit(PolicyFile(Policy.model_validate({"principals": GRANTS})))
    result: Command = admit.admit(message, "manage", principal)
    return result


def is_admitted(principal: str, command: str, project: str = "p1", /, **arguments: Any) -> bool:
    try:
        admitted(principal, command, project, **arguments)
    except Rejected as refused:
        if refused.code == "not_allowed":
            return False
        raise
    return True


@pytest.mark.parametrize("command", READS)
def test_reading_command_needs_read_in_its_project(command: str) -> None:
    assert is_admitted("reader", command)
    assert not is_admitted("reader", command, "p2")
    assert not is_admitted("keeper", command)


@pytest.mark.parametrize("command", ["declare_mode", "set_memory_mode", "forget", "rebuild", "delete_category", "else"])
def test_other_commands_need_manage(command: str) -> None:
    assert not is_admitted("reader", command)
    assert is_admitted("manager", command)
    assert is_admitted("keeper", command)


@pytest.mark.parametrize(("principal", "projects"), [("reader", ("p1",)), ("manager", ("p1", "p2")), ("owner", None)])
def test_reading_command_knows_the_projects_of_its_sender(principal: str, projects: tuple[str, ...] | None) -> None:
    assert admitted(principal, "suggest_modes").permitted_projects == projects


@pytest.mark.parametrize(("principal", "projects"), [("manager", ("p1", "p2")), ("keeper", None), ("owner", None)])
def test_other_command_knows_the_projects_that_its_sender_manages(
    principal: str, projects: tuple[str, ...] | None
) -> None:
    assert admitted(principal, "forget").permitted_projects == projects


@pytest.mark.parametrize("command", sorted(OPERATING_COMMANDS))
@pytest.mark.parametrize("principal", [None, "app", "Operator"])
def test_without_authorization_nobody_but_the_operator_may_operate(command: str, principal: str | None) -> None:
    message = Command(command=command, scope=Scope(user_id="u"))
    with pytest.raises(Rejected, match=r"not_allowed: .*AUTHORIZATION"):
        Admit().admit(message, "manage", principal)
    assert Admit().admit(message, "manage", OPERATOR).author == OPERATOR


def test_with_authorization_the_name_of_the_operator_grants_nothing() -> None:
    assert not is_admitted(OPERATOR, "edit_pipeline")


def test_without_authorization_a_command_is_permitted_in_all_projects() -> None:
    command = Command(command="forget", scope=Scope(user_id="u"))
    assert Admit().admit(command, "manage", None).permitted_projects is None
