"""The boundary fields of a deployment: keys, names, and what names no boundary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modestream_client import MemoryClient
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.http.routes import route_of

TENANT = BoundaryFields(["organization_id", "user_id"])

value = st.text(min_size=1, max_size=20)


@given(value, value, value, value)
def test_key_is_of_one_boundary_and_tells_its_values(
    organization: str, user: str, other_organization: str, other_user: str
) -> None:
    first = {"organization_id": organization, "user_id": user}
    second = {"organization_id": other_organization, "user_id": other_user}
    assert TENANT.values_of_key(TENANT.key(first)) == first
    assert (TENANT.key(first) == TENANT.key(second)) is (first == second)


@given(value)
def test_name_of_one_field_is_its_value(user: str) -> None:
    scope = {"user_id": user, "project_id": "p"}
    assert USER_BOUNDARY.name(scope) == user
    assert USER_BOUNDARY.values(user) == {"user_id": user}
    assert USER_BOUNDARY.values_of_key(USER_BOUNDARY.key(scope)) == {"user_id": user}


def test_values_that_join_alike_have_two_keys() -> None:
    keys = [
        TENANT.key({"organization_id": organization, "user_id": two})
        for organization, two in (("a/b", "c"), ("a", "b/c"))
    ]
    assert keys == ["a%2Fb/c", "a/b%2Fc"]


NO_NAMES = ["", "acme", "/", "acme/", "/u1", "acme/u1/x", "acme/%41", "acme/a%2fb", "a%/b", "%ff/b"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_canonical_string_names_no_boundary(name: str) -> None:
    with pytest.raises(ValueError, match="names no organization_id/user_id"):
        TENANT.values(name)


def test_others_are_the_fields_outside_the_boundary() -> None:
    assert TENANT.others({"organization_id": "acme", "user_id": "u1", "project_id": "*"}) == {"project_id": "*"}


def test_order_of_the_key_is_the_declared_one() -> None:
    assert BoundaryFields(["user_id", "organization_id"]).key({"organization_id": "acme", "user_id": "u1"}) == "u1/acme"


@pytest.mark.parametrize(
    "how",
    [
        {"user_id": {"user_id": "u1", "organization_id": "acme"}},
        {"user_id": "acme/u1"},
        {"scope": {"organization_id": "acme", "user_id": "u1"}},
    ],
)
def test_client_takes_a_user_by_its_fields_or_its_name(how: dict[str, object]) -> None:
    memory = MemoryClient("nowhere:1", boundary=("organization_id", "user_id"), **how)  # type: ignore[arg-type]
    assert memory._scope(None, "p1") == {"organization_id": "acme", "user_id": "u1", "project_id": "p1"}
    assert memory._scope("acme/u2", None) == {"organization_id": "acme", "user_id": "u2", "project_id": "default"}


@pytest.mark.parametrize(
    "users", ["u1", {"user_id": "u1"}, {"organization_id": "acme", "user_id": "u1", "team": "red"}, [{"team": "red"}]]
)
async def test_client_refuses_what_names_no_user(users: object) -> None:
    memory = MemoryClient("nowhere:1", boundary=("organization_id", "user_id"))
    with pytest.raises(ValueError, match="organization_id"):
        await memory.retrieve("x", users=users)  # type: ignore[arg-type]


def test_path_has_the_canonical_string_encoded_once() -> None:
    scope = {"organization_id": "a/b", "user_id": "u1", "project_id": "p1"}
    route = route_of({"schema": "list.v1", "what": "memories", "scope": scope}, TENANT)
    assert route.path == "/v1/users/a%252Fb%2Fu1/memories"
    assert route.query == {"project_id": "p1"}
    forget = {"schema": "command.v1", "command": "forget", "scope": scope, "arguments": {"user": True}}
    assert route_of(forget, TENANT).path == "/v1/users/a%252Fb%2Fu1/forget"
