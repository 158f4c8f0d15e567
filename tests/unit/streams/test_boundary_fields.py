"""The boundary that a scope model declares: its declaration, its effects, and the guards of what it created."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.rules.access.grants import narrow_selector, permitted_projects, require_operating, require_permission
from schemas.failures import Rejected
from schemas.internal.changes import Change
from schemas.internal.service import ServiceRecord
from schemas.messages.decoding import validate_json
from schemas.messages.retrieval import RetrieveRequest
from schemas.messages.turns import Turn
from schemas.scope_models import bind_issued_scope, bind_scope, deployed_scope
from schemas.scopes import Scope, Selector
from schemas.state.policies import Policy, policy_of
from streams.bootstrap.data_directory import check_scope_fields, save_scope_fields
from streams.bootstrap.deployment_records import agree_on_service, service_record
from streams.settings import Settings
from streams.tables.json_table import scope_from_key, scope_key
from streams.wire.partitioning import boundary_in
from tests.builders.boundary_scopes import OrganizationScope, SharedScope, TenantScope
from tests.builders.turns import record
from tests.fakes.deployment_log import FakeDeploymentLog

EXAMPLES = "tests.builders.boundary_scopes"

TENANTS, ORGANIZATIONS, SHARED = (deployed_scope(scope) for scope in (TenantScope, OrganizationScope, SharedScope))

ACME = {"organization_id": "acme", "user_id": "u1"}


def turn_in(model: type[Scope], scope: Any) -> Scope:
    turn = {"scope": scope, "conversation_id": "c", "role": "user", "content": "x"}
    return validate_json(bind_scope(Turn, model), json.dumps(turn).encode()).scope


def selected_by(model: type[Scope], scope: Any) -> Selector:
    message = json.dumps({"scope": scope, "query": "x"}).encode()
    return validate_json(bind_scope(RetrieveRequest, model), message).scope


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("WithEmptyBoundary", "boundary_fields is a tuple of field names, such as boundary_fields: ClassVar[tuple[str"),
        ("WithOneString", "not 'user_id'"),
        ("WithBoundaryAsField", "boundary_fields is a declaration and no field: annotate it as boundary_fields: Cl"),
        ("WithUnknownBoundary", "boundary_fields names 'organization_id', which is not a field of the model"),
        ("WithBoundaryTwice", "boundary_fields names a field twice: user_id, user_id"),
        ("WithProjectAsBoundary", "boundary_fields names project_id, but every boundary has its own projects"),
    ],
)
def test_what_is_no_boundary_is_refused_at_the_start(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODESTREAM_SCOPE_MODEL", f"{EXAMPLES}.{name}")
    with pytest.raises(ValidationError) as refused:
        Settings(_env_file=None)
    [error] = refused.value.errors()
    assert error["loc"] == ("scope_model",)
    assert f"{name}: " in error["msg"]
    assert message in error["msg"]


@pytest.mark.parametrize(
    ("model", "given", "boundary"),
    [
        (TENANTS, ACME, "acme/u1"),
        (TENANTS, {"user_id": "100%", "organization_id": "a/b"}, "a%2Fb/100%25"),
        (ORGANIZATIONS, {"organization_id": "acme"}, "acme"),
        (SHARED, ACME, "acme"),
        (Scope, {"user_id": "a/b"}, "a%2Fb"),
    ],
)
def test_boundary_of_a_scope_and_of_a_selector(model: type[Scope], given: Any, boundary: str) -> None:
    assert turn_in(model, given).boundary == selected_by(model, given).boundary == boundary
    assert turn_in(model, given).model_dump() == {**given, "project_id": "default"}
    assert boundary_in(record({"scope": given}), model.boundary_fields) == boundary
    exactly = {name: (value,) for name, value in given.items()}
    assert selected_by(model, given).fields() == {**exactly, "project_id": ("default",)}


def test_field_outside_the_boundary_is_selected_as_any_other() -> None:
    assert selected_by(SHARED, {"organization_id": "acme", "user_id": "*"}).fields()["user_id"] is None
    assert selected_by(SHARED, {"organization_id": "acme", "user_id": ["a", "b"]}).fields()["user_id"] == ("a", "b")
    with pytest.raises(Rejected) as refused:
        selected_by(SHARED, {"organization_id": "*", "user_id": "a"})
    assert refused.value.code == "selector_refused"
    assert refused.value.field == "scope.organization_id"
    assert "organization_id is a boundary: a request names one value exactly" in str(refused.value)


def test_scope_without_users_knows_no_user() -> None:
    with pytest.raises(Rejected) as refused:
        turn_in(ORGANIZATIONS, ACME)
    assert refused.value.code == "unknown_scope_field"
    assert refused.value.field == "scope.user_id"
    assert "user_id" not in ORGANIZATIONS.model_json_schema()["properties"]


def test_issued_commands_keep_the_boundary() -> None:
    scope = turn_in(ORGANIZATIONS, {"organization_id": "acme"})
    model = bind_issued_scope(ORGANIZATIONS)
    stored = model().with_change("0-1", Change(scope=scope, action="forget")).model_dump_json(by_alias=True)
    assert model.model_validate_json(stored).changes["0-1"].scope == scope


@pytest.mark.parametrize("model", [TENANTS, SHARED])
def test_table_key_begins_with_the_boundary(model: type[Scope]) -> None:
    scope = turn_in(model, {"organization_id": "a/b", "user_id": "c=d"})
    key = scope_key(scope.model_dump(), model.boundary_fields)
    assert key.startswith(f"{scope.boundary}/default")
    assert scope_from_key(key, model.boundary_fields) == scope.model_dump()


GRANTS = {
    "acme": [{"organization_id": "acme", "user_id": "*", "project_id": ["p1", "p2"]}],
    "root": [{"organization_id": "*", "user_id": "*"}],
    "two": [{"organization_id": ["acme", "globex"], "user_id": "u1", "project_id": "p1", "may": ["read"]}],
}


@pytest.mark.parametrize(
    ("principal", "organization", "user", "projects"),
    [
        ("acme", "acme", "u1", ("p1", "p2")),
        ("acme", "globex", "u1", ()),
        ("root", "globex", "u9", None),
        ("two", "globex", "u1", ("p1",)),
        ("two", "globex", "u2", ()),
        ("two", "other", "u1", ()),
    ],
)
def test_grants_are_of_boundaries(principal: str, organization: str, user: str, projects: Any) -> None:
    policy = policy_of(TENANTS).model_validate({"principals": GRANTS})
    given = {"organization_id": organization, "user_id": user, "project_id": "p1"}
    assert permitted_projects(policy, principal, "read", turn_in(TENANTS, given)) == projects
    if projects == ():
        for refused in (
            lambda: narrow_selector(policy, principal, selected_by(TENANTS, given)),
            lambda: require_permission(policy, principal, "read", turn_in(TENANTS, given)),
        ):
            with pytest.raises(Rejected, match="may not read here"):
                refused()
    else:
        require_permission(policy, principal, "read", turn_in(TENANTS, given))
        everywhere = narrow_selector(policy, principal, selected_by(TENANTS, {**given, "project_id": "*"}))
        assert everywhere.project_id == projects


@pytest.mark.parametrize(
    "grant", [{"user_id": "u1"}, {"organization_id": "acme"}, {**ACME, "team": "red"}, {**ACME, "may": ["fly"]}]
)
def test_grant_names_every_boundary_field_and_no_unknown_one(grant: Any) -> None:
    with pytest.raises(ValidationError):
        policy_of(TENANTS).model_validate({"principals": {"p": [grant]}})


def test_grants_of_an_organization_name_no_user() -> None:
    policy = policy_of(ORGANIZATIONS).model_validate({"principals": {"p": [{"organization_id": "acme"}]}})
    require_permission(policy, "p", "manage", turn_in(ORGANIZATIONS, {"organization_id": "acme"}))
    with pytest.raises(ValidationError, match="user_id"):
        policy_of(ORGANIZATIONS).model_validate({"principals": {"p": [ACME]}})
    assert policy_of(Scope) is Policy
    operate = {
        "p": [{"organization_id": "acme", "may": ["operate"]}],
        "q": [{"organization_id": "*", "may": ["operate"]}],
    }
    operating = policy_of(ORGANIZATIONS).model_validate({"principals": operate})
    require_operating(operating, "q")
    with pytest.raises(Rejected, match="may not operate here"):
        require_operating(operating, "p")


class UserScope(TenantScope):
    """The same fields, and another boundary."""

    boundary_fields = ("user_id",)


def made_with(model: type[Scope]) -> ServiceRecord:
    return service_record(Settings(_env_file=None, scope_model=model))


async def test_worker_with_another_boundary_is_refused_with_both() -> None:
    service = FakeDeploymentLog()
    await agree_on_service(made_with(TENANTS), service)
    assert json.loads(service.written[0])["boundary"] == ["organization_id", "user_id"]
    with pytest.raises(SystemExit) as refused:
        await agree_on_service(made_with(deployed_scope(UserScope)), service)
    assert "was created with the boundary organization_id, user_id, not user_id" in str(refused.value.code)
    assert "SCOPE_MODEL" in str(refused.value.code)


def test_data_directory_with_another_boundary_is_refused_with_both(tmp_path: Path) -> None:
    save_scope_fields(tmp_path, TENANTS)
    save_scope_fields(tmp_path, TENANTS)
    with pytest.raises(SystemExit, match="created with the boundary organization_id, user_id, not user_id"):
        check_scope_fields(tmp_path, deployed_scope(UserScope))
