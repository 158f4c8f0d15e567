"""The setting `SCOPE_MODEL`: valid models, their effect, and the errors of invalid ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.rules.access.grants import RequestLimits, require_permission
from schemas.failures import Rejected
from schemas.internal.changes import Change, IssuedCommands
from schemas.messages.decoding import validate_json
from schemas.messages.retrieval import RetrieveRequest
from schemas.messages.turns import Turn
from schemas.scope_models import bind_issued_scope, bind_scope, deployed_scope
from schemas.scopes import Scope, Selector
from schemas.state.policies import Policy
from streams.api_docs.asyncapi import build_asyncapi
from streams.bootstrap.data_directory import check_scope_fields, load_worker_id, save_scope_fields
from streams.settings import Settings
from streams.tables.json_table import scope_from_key, scope_key
from tests.builders.scopes import AgentScope, PlainScope

EXAMPLES = "tests.builders.scopes"

AGENTS = deployed_scope(AgentScope)


def settings_with(path: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("MODESTREAM_SCOPE_MODEL", path)
    return Settings(_env_file=None)


def turn_json(scope: Any) -> bytes:
    return json.dumps({"scope": scope, "conversation_id": "c", "role": "user", "content": "x"}).encode()


def turn_in(scope: Any) -> Scope:
    return validate_json(bind_scope(Turn, AGENTS), turn_json(scope)).scope


def selected_by(scope: Any) -> dict[str, tuple[str, ...] | None]:
    message = json.dumps({"scope": scope, "query": "x"}).encode()
    return validate_json(bind_scope(RetrieveRequest, AGENTS), message).scope.fields()


def test_built_in_scope_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings(_env_file=None).scope_model is settings_with("", monkeypatch).scope_model is Scope
    assert bind_scope(Turn, Scope) == Turn
    assert bind_issued_scope(Scope) == IssuedCommands


@pytest.mark.parametrize("path", [f"{EXAMPLES}.AgentScope", f"{EXAMPLES}:AgentScope"])
def test_model_is_loaded_by_its_dotted_path(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = settings_with(path, monkeypatch).scope_model
    assert issubclass(scope, AgentScope)
    assert [*scope.model_fields] == ["user_id", "project_id", "agent_id", "channel"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("Nowhere", "is not a dotted path"),
        ("no.such.module.Model", "can't be imported: No module named 'no'"),
        (f"{EXAMPLES}.Missing", "can't be imported"),
        (f"{EXAMPLES}.NO_MODEL", "is not a Pydantic model"),
        (f"{EXAMPLES}.NoFields", "is not a Pydantic model"),
        (f"{EXAMPLES}.WithoutUser", "WithoutUser: it has no field user_id"),
        (f"{EXAMPLES}.WithNumber", "shard: a field is a str"),
        (f"{EXAMPLES}.WithNothing", "team: a field is a str"),
        (f"{EXAMPLES}.WithAlias", "user_id: a field has one name"),
        (f"{EXAMPLES}.WithAny", "team: '*' can't be a value"),
        (f"{EXAMPLES}.WithFactory", "team: a default is a value"),
        (f"{EXAMPLES}.WithTakenName", "fields: this name is reserved"),
        (f"{EXAMPLES}.WithDecorator", "put lower into"),
    ],
)
def test_invalid_scope_model_is_rejected_at_start(path: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError) as refused:
        settings_with(path, monkeypatch)
    [error] = refused.value.errors()
    assert error["loc"] == ("scope_model",)
    assert message in error["msg"]


def test_scope_of_a_turn_is_complete_and_validated_by_the_model() -> None:
    scope = turn_in({"user_id": "u1", "agent_id": "BOB"})
    everything = {"user_id": "u1", "project_id": "default", "agent_id": "bob", "channel": "chat"}
    assert scope.model_dump() == everything
    assert scope.boundary == "u1"


@pytest.mark.parametrize(
    ("scope", "code", "field"),
    [
        ({"user_id": "U1"}, "invalid_value", "scope.user_id"),
        ({"user_id": "u1", "channel": "fax"}, "invalid_value", "scope.channel"),
        ({"user_id": "u1", "agent_id": "*"}, "invalid_value", "scope.agent_id"),
        ({"user_id": "u1", "agent_id": ""}, "invalid_value", "scope.agent_id"),
        ({"user_id": "u1", "agent_id": "a" * 257}, "invalid_value", "scope.agent_id"),
        ({"user_id": "u1", "agent_id": "a\nb"}, "invalid_value", "scope.agent_id"),
        ({"user_id": "u1", "agent_id": 7}, "invalid_value", "scope.agent_id"),
        ({"user_id": "u1", "team": "t"}, "unknown_scope_field", "scope.team"),
    ],
)
def test_invalid_scope_is_rejected_with_its_field(scope: Any, code: str, field: str) -> None:
    with pytest.raises(Rejected) as refused:
        turn_in(scope)
    assert refused.value.code == code
    assert refused.value.field == field


def test_selector_covers_every_field_and_is_validated_by_the_model() -> None:
    chosen = selected_by({"user_id": "u1", "project_id": "*", "agent_id": ["BOB", "eve"]})
    assert chosen == {"user_id": ("u1",), "project_id": None, "agent_id": ("bob", "eve"), "channel": ("chat",)}
    for wrong, code in (
        ({"user_id": ["u1"]}, "selector_refused"),
        ({"user_id": "*"}, "selector_refused"),
        ({"user_id": "U1"}, "invalid_value"),
        ({"user_id": "u1", "channel": ["chat", "fax"]}, "invalid_value"),
        ({"user_id": "u1", "agent_id": []}, "invalid_value"),
        ({"user_id": "u1", "team": "*"}, "unknown_scope_field"),
    ):
        with pytest.raises(Rejected) as refused:
            selected_by(wrong)
        assert refused.value.code == code


def test_plain_model_gets_the_rules_of_scopes_and_required_fields() -> None:
    scope = deployed_scope(PlainScope)
    given = {"user_id": "u1", "team": "red"}
    assert scope.model_validate(given).model_dump() == {"user_id": "u1", "project_id": "default", "team": "red"}
    turn, question = bind_scope(Turn, scope), bind_scope(RetrieveRequest, scope)
    for message, value in ((turn, turn_json({"user_id": "u1"})), (question, b'{"query":"x","scope":{"user_id":"u1"}}')):
        with pytest.raises(Rejected) as refused:
            validate_json(message, value)
        assert refused.value.code == "invalid_value"
        assert refused.value.field == "scope.team"
    with pytest.raises(ValidationError):
        scope.model_validate({"user_id": "u1", "team": "*"})


def test_limit_counts_the_combinations_of_all_fields() -> None:
    chosen = {"user_id": "u1", "project_id": ["a", "b"], "agent_id": ["c", "d", "e"]}
    message = json.dumps({"scope": chosen, "query": "x"}).encode()
    request = validate_json(bind_scope(RetrieveRequest, AGENTS), message)
    RequestLimits(max_scopes=6).check(request)
    with pytest.raises(Rejected, match="this one lists 6") as refused:
        RequestLimits(max_scopes=5).check(request)
    assert refused.value.field == "scope.agent_id"


def test_grant_covers_any_value_of_further_fields() -> None:
    policy = Policy.model_validate({"principals": {"ana": [{"user_id": "u1", "project_id": "default"}]}})
    require_permission(policy, "ana", "write", AGENTS.model_validate({"user_id": "u1", "agent_id": "eve"}))
    with pytest.raises(Rejected):
        require_permission(policy, "ana", "write", AGENTS.model_validate({"user_id": "u2", "agent_id": "eve"}))


def test_issued_commands_keep_every_scope_field() -> None:
    scope = AGENTS.model_validate({"user_id": "u1", "agent_id": "eve"})
    model = bind_issued_scope(AGENTS)
    stored = model().with_change("0-1", Change(scope=scope, action="forget")).model_dump_json(by_alias=True)
    assert model.model_validate_json(stored).changes["0-1"].scope == scope


def test_table_key_names_further_fields_only() -> None:
    scope = {"agent_id": "a=b/c", "user_id": "u/1", "project_id": "p", "channel": "mail"}
    assert scope_key(scope) == "u%2F1/p/agent_id=a=b%2Fc/channel=mail"
    assert scope_from_key(scope_key(scope)) == scope
    assert scope_key({"project_id": "p", "user_id": "u1"}) == "u1/p"


def test_data_directory_rejects_other_scope_fields(tmp_path: Path) -> None:
    save_scope_fields(tmp_path, AGENTS)
    save_scope_fields(tmp_path, AGENTS)
    saved = json.loads((tmp_path / "scope.json").read_text())
    assert saved["scope_fields"] == ["agent_id", "channel", "project_id", "user_id"]
    assert len(saved["scope_schema_hash"]) == 64
    with pytest.raises(SystemExit, match="was created with scopes of agent_id, channel, project_id, user_id, not"):
        check_scope_fields(tmp_path, Scope)


def test_workers_that_start_at_the_same_time_do_not_share_a_draft(tmp_path: Path) -> None:
    (tmp_path / "scope.json.new").mkdir()
    save_scope_fields(tmp_path, AGENTS)
    with pytest.raises(SystemExit):
        check_scope_fields(tmp_path, Scope)


@pytest.mark.parametrize("content", [b"", b'{"scope_fi', b"[]", b"\xa5"])
def test_damaged_scope_file_is_made_again(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "scope.json").write_bytes(content)
    save_scope_fields(tmp_path, AGENTS)
    with pytest.raises(SystemExit):
        check_scope_fields(tmp_path, Scope)


@pytest.mark.parametrize("content", [b"", b"\xa5\xa5", b"cut"])
def test_damaged_worker_id_is_made_again(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "worker.id"
    file.write_bytes(content)
    worker_id = load_worker_id(file)
    assert len(worker_id) == 32
    assert load_worker_id(file) == worker_id


def test_documents_show_the_scopes_of_the_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = build_asyncapi(settings_with(f"{EXAMPLES}.AgentScope", monkeypatch))["components"]["schemas"]
    assert schemas["turn_v1"]["properties"]["scope"]["$ref"] == "#/components/schemas/AgentScope"
    assert schemas["AgentScope"]["properties"]["channel"]["enum"] == ["chat", "mail"]
    chosen = schemas["Selector"]["properties"]
    assert chosen["user_id"]["pattern"] == "^[a-z0-9]+$"
    assert {"const": "*", "type": "string"} in chosen["agent_id"]["anyOf"]
    assert Selector.model_fields.keys() < chosen.keys()
