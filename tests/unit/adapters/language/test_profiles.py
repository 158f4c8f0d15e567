import pytest
from pydantic import ValidationError

from schemas.models.language import Profiles

SMALL: dict[str, object] = {"model": "openai/small"}


def profiles(**named: dict[str, object]) -> Profiles:
    return Profiles.model_validate(named)


@pytest.mark.parametrize(
    ("step", "role", "expected"),
    [
        ("understand.turn", "understand", "understand.turn"),
        ("understand.topic", "understand", "understand"),
        ("verify.hits", "verify", "careful"),
        ("cluster.turns", "other", "careful"),
        ("distil", "consolidate", "default"),
    ],
)
def test_profile_of_step_precedes_role_and_default(step: str, role: str, expected: str) -> None:
    there = profiles(
        **{
            "default": SMALL,
            "understand": SMALL,
            "understand.turn": SMALL,
            "careful": SMALL | {"roles": ["verify", "cluster.turns"]},
        }
    )
    assert there.profile_for(step, role) == expected


def test_no_profile_is_chosen_without_profiles() -> None:
    assert Profiles().profile_for("understand.turn", "understand") is None
    assert not Profiles()


def test_profiles_without_a_default_are_refused() -> None:
    with pytest.raises(ValidationError, match="must be named 'default'"):
        profiles(fast=SMALL)


def test_unknown_field_is_refused_with_its_profiles_name() -> None:
    with pytest.raises(ValidationError) as refused:
        profiles(default=SMALL, fast=SMALL | {"temprature": 0})
    assert "fast.temprature" in str(refused.value)


def test_a_role_of_two_profiles_is_refused() -> None:
    with pytest.raises(ValidationError, match="'verify'"):
        profiles(default=SMALL, one=SMALL | {"roles": ["verify"]}, two=SMALL | {"roles": ["verify"]})


@pytest.mark.parametrize("field", ["api_key_env", "api_key"])
def test_api_key_as_variable_name_is_refused_and_not_repeated(field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        profiles(default=SMALL | {field: "sk-1234567890abcdef"})
    assert "1234567890" not in str(refused.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [("retries", -1), ("timeout_s", 0), ("max_tokens", 0), ("structured_output", "xml"), ("max_concurrency", 0)],
)
def test_invalid_values_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError):
        profiles(default=SMALL | {field: value})


def test_example_of_the_contract_is_a_valid_profile() -> None:
    example = (
        '{"default":{"model":"openai/gpt-x","api_base":null,"api_key_env":"OPENAI_API_KEY","temperature":0,'
        '"max_tokens":1000,"timeout_s":20,"retries":2,"structured_output":"json_schema"}}'
    )
    assert dict(Profiles.model_validate_json(example).items())["default"].api_key_env == "OPENAI_API_KEY"
