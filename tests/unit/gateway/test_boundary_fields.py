"""A gateway of a deployment whose boundary has two fields: what it keeps by user, and what it is refused for."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from modestream_client.boundary import BoundaryFields
from modestream_client.operations import LIST_MODES
from pydantic import ValidationError

from gateway.backend.deployment_record import DeploymentRecord
from gateway.backend.followers import Cluster
from gateway.connection_settings import StdioSettings
from gateway.keys.key_file import add_key_commands, run_key_command
from gateway.service.calls import Call, Caller
from gateway.service.dead_letters import read_letter
from gateway.service.events import Feed, already_begun
from gateway.service.runs import Runs
from gateway.service.service import MemoryService
from schemas.internal.service import ServiceRecord
from schemas.messages.records import Record
from schemas.scope_models import deployed_scope
from schemas.scopes import Scope
from schemas.state.policies import policy_of
from tests.builders.boundary_scopes import TenantScope
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import http_over

TENANTS = deployed_scope(TenantScope)
FIELDS: BoundaryFields = TENANTS.boundary_fields
ACME = {"organization_id": "acme", "user_id": "u1"}


def call_of(user: str, caller: Caller | None = None) -> Call:
    return Call.within(caller or Caller(), user)


def kept(topic: str, value: Any, key: bytes | None = None, offset: int = 0) -> Record:
    return Record(topic, 0, offset, 0, key, None if value is None else json.dumps(value).encode(), ())


async def test_requests_have_the_boundary_of_the_path_and_no_other() -> None:
    wire = FakeWire()
    service = MemoryService(wire, TENANTS)
    await service.operations.run(
        LIST_MODES, call_of("acme/u1"), {"project_id": "p1", "organization_id": "globex", "user_id": "x"}
    )
    assert wire.records[0]["scope"] == {**ACME, "project_id": "p1"}


async def test_command_of_an_operator_has_a_sound_scope() -> None:
    wire = FakeWire()
    async with http_over(MemoryService(wire, TENANTS), scope=TENANTS) as http:
        assert (await http.get("/v1/pipelines")).status_code == 200
    assert {*wire.records[0]["scope"]} == {*FIELDS}
    assert TENANTS.model_validate(wire.records[0]["scope"])


async def test_runs_are_those_of_a_boundary() -> None:
    runs = Runs(already_begun, FIELDS)
    nothing: Any = {"created": [], "superseded": [], "modes": {}, "diff": []}
    told = {"schema": "consolidated.v1", "run": "r", "at": "t", **nothing}
    for organization in ("acme", "globex"):
        scope = {"organization_id": organization, "user_id": "u1", "project_id": organization}
        runs.apply(json.dumps({**told, "scope": scope}).encode())
    assert [run.project_id for run in await runs.list(call_of("acme/u1"), None)] == ["acme"]
    runs.forget(b"acme/u1")
    assert await runs.list(call_of("acme/u1"), None) == []
    assert [run.project_id for run in await runs.list(call_of("globex/u1"), None)] == ["globex"]


@pytest.mark.parametrize(
    ("scope", "key", "owner"),
    [
        (ACME, b"acme/u1", "acme/u1"),
        (ACME, None, "acme/u1"),
        (ACME, b"globex/u1", None),
        ({"user_id": "u1"}, b"u1", None),
        ({**ACME, "organization_id": ["acme"]}, None, None),
        (["acme", "u1"], None, None),
    ],
)
def test_dead_letter_has_an_owner_where_every_boundary_field_is_named(
    scope: Any, key: bytes | None, owner: str | None
) -> None:
    assert read_letter(kept("dead-letters", {"scope": scope}, key), "memory.", FIELDS).user == owner


async def test_events_are_those_of_a_boundary() -> None:
    feed = Feed()
    service = MemoryService(FakeWire(), TENANTS, feed=feed)
    listening = {
        organization: await service.events.open(call_of(f"{organization}/u1"), None)
        for organization in ("acme", "globex")
    }
    for events in listening.values():
        assert (await anext(events)).event == "opened"
    for offset, name in enumerate(listening):
        scope = {"organization_id": name, "user_id": "u1", "project_id": name}
        memory = {"memory_id": "m", "mode": "general", "boundary": f"{name}/u1", "scope": scope, "versions": [{}]}
        value = json.dumps({"schema": "remembered.v1", "memory": memory}).encode()
        feed.take("remembered", 1, offset, 0, f"{name}/u1".encode(), value)
    for name, events in listening.items():
        event = (await anext(events)).event
        assert not isinstance(event, str)
        assert event.project_id == name


def test_grant_of_an_organization_covers_its_users() -> None:
    policy = policy_of(TENANTS).model_validate({"principals": {"p": [{"organization_id": "acme", "user_id": "*"}]}})
    [grant] = policy.principals["p"]
    assert [grant.covers_user(user) for user in ("acme/u1", "acme/u2", "globex/u1", "acme", "u1")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert not grant.covers_every_user()


OTHERS = deployed_scope(type("Later", (TenantScope,), {"__annotations__": {"team": str}}))
"""Scopes of a deployment before, and of a worker that was refused: the first record since a tombstone counts."""


def record_of(scope: type[Scope]) -> bytes:
    return ServiceRecord.of(scope, 4, "memory.", []).model_dump_json(by_alias=True).encode()


@pytest.mark.parametrize(
    ("made", "own", "conflict"),
    [
        (TENANTS, TENANTS, None),
        (Scope, Scope, None),
        (TENANTS, Scope, "created with scopes of organization_id, project_id, user_id, not project_id, user_id"),
        (
            type("Reversed", (TenantScope,), {"boundary_fields": ("user_id", "organization_id")}),
            TENANTS,
            "created with the boundary user_id, organization_id, not organization_id, user_id",
        ),
    ],
)
def test_gateway_with_another_scope_than_the_deployment_is_refused(made: Any, own: Any, conflict: str | None) -> None:
    found = DeploymentRecord(Cluster("nowhere:1", "memory."), own)
    written = record_of(made if issubclass(made, Scope) else deployed_scope(made))
    for offset, value in enumerate((b"nonsense", record_of(OTHERS), None, written, record_of(OTHERS))):
        found.take([Record("service", 0, offset, 0, b"service", value, ())])
    if conflict is None:
        assert found.conflict is None
    else:
        assert conflict in (found.conflict or "")
        assert "SCOPE_MODEL" in (found.conflict or "")


def test_key_of_what_names_no_user_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser, path = argparse.ArgumentParser(), tmp_path / "keys.json"
    add_key_commands(parser)
    for user, code in (("u1", 1), ("acme/u1", 0)):
        assert run_key_command(parser.parse_args(["add", "--principal", "p", "--user", user]), path, FIELDS) == code
        assert path.exists() is (code == 0)
    assert "'u1' names no organization_id/user_id" in capsys.readouterr().err


def test_stdio_serves_a_boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODESTREAM_SCOPE_MODEL", "tests.builders.boundary_scopes.TenantScope")
    monkeypatch.setenv("MODESTREAM_USER", "acme/u1")
    assert StdioSettings(_env_file=None).user == "acme/u1"
    monkeypatch.setenv("MODESTREAM_USER", "u1")
    with pytest.raises(ValidationError, match="USER: 'u1' names no organization_id/user_id"):
        StdioSettings(_env_file=None)
