"""A scope for commands that are about none."""

from typing import ClassVar, Literal

import pytest
from pydantic import BaseModel

from schemas.scope_models import deployed_scope, some_scope
from schemas.scopes import Scope


class Shop(BaseModel):
    boundary_fields: ClassVar[tuple[str, ...]] = ("organization_id", "user_id")
    organization_id: str
    user_id: str
    region: Literal["eu", "us"]
    channel: str
    tier: str = "free"


@pytest.mark.parametrize("model", [Scope, deployed_scope(Shop)])
def test_scope_of_any_model_is_valid(model: type[Scope]) -> None:
    scope = some_scope(model, "modestream-operator")
    assert model.model_validate(scope).model_dump().items() >= scope.items()


def test_choices_have_their_first_value_and_defaults_are_left_out() -> None:
    assert some_scope(deployed_scope(Shop), "x") == {
        "organization_id": "x",
        "user_id": "x",
        "region": "eu",
        "channel": "x",
    }
