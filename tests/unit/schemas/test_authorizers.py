"""What says which grants a principal has: a file, or a deployment's own function."""

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from schemas.failures import Rejected
from schemas.scopes import Scope
from schemas.state import policies
from schemas.state.policies import Grant, open_grants

HERE = "tests.unit.schemas.test_authorizers"
GRANTS: dict[str, list[dict[str, Any]]] = {"ana": [{"user_id": "ana", "may": ["read"]}], "wrong": [{"user": "ana"}]}


def grants_of(principal: str) -> Iterable[dict[str, Any]]:
    return GRANTS.get(principal, ())


NO_FUNCTION = 1


def opened(name: str = "grants_of") -> Any:
    return open_grants(None, f"{HERE}.{name}", Scope)


def test_function_says_which_grants_a_principal_has() -> None:
    [grant] = opened().of("ana")
    assert grant.user_id == ("ana",)
    assert grant.may == ("read",)


def test_principal_that_the_function_does_not_know_has_none() -> None:
    assert opened().of("ben") == ()


def test_changed_grants_count_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    grants = opened()
    monkeypatch.setitem(GRANTS, "ana", [])
    assert grants.of("ana") == ()


def test_function_that_fails_refuses_the_request() -> None:
    with pytest.raises(Rejected) as refused:
        opened().of("wrong")
    assert refused.value.code == "unavailable"


def test_function_that_hangs_is_unavailable_and_others_do_not_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "MAX_ANSWER_S", 0.05)
    released = threading.Event()
    grants = policies.InstalledGrants(lambda _: [{}] * released.wait(60), Grant)
    for reason in ("has not answered in time", "does not answer"):
        with pytest.raises(Rejected, match=reason):
            grants.of("ana")
    released.set()


def test_without_settings_there_are_no_grants() -> None:
    assert open_grants(None, None, Scope) is None


@pytest.mark.parametrize(
    ("file", "authorizer", "says"),
    [
        (None, "acme.nowhere.grants_of", "MODESTREAM_AUTHORIZER: 'acme.nowhere.grants_of' can't be imported"),
        (None, f"{HERE}.NO_FUNCTION", "can't be called with a principal"),
        (Path("policy.json"), f"{HERE}.grants_of", "AUTHORIZATION is set as well"),
    ],
)
def test_settings_that_can_not_be_used_are_refused(file: Path | None, authorizer: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        open_grants(file, authorizer, Scope)
