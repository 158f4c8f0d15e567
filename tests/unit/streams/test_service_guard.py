"""What a deployment was made with: recorded at its first start, compared at every later one."""

import json
from typing import Any

import pytest

from schemas.internal.service import SUCCESSOR_KEY, ServiceRecord, Successor, SuccessorState
from schemas.scope_models import deployed_scope
from schemas.scopes import Scope
from streams.bootstrap.deployment_records import agree_on_service, service_record
from streams.settings import Settings
from tests.builders.scopes import AgentScope
from tests.fakes.deployment_log import FakeDeploymentLog

AGENTS = deployed_scope(AgentScope)


def record(**settings: Any) -> ServiceRecord:
    return service_record(Settings(_env_file=None, **settings))


def value(own: ServiceRecord) -> bytes:
    return own.model_dump_json(by_alias=True).encode()


async def refusal(own: ServiceRecord, service: FakeDeploymentLog) -> str:
    with pytest.raises(SystemExit) as refused:
        await agree_on_service(own, service)
    return str(refused.value.code)


async def test_first_start_writes_the_record() -> None:
    service = FakeDeploymentLog()
    assert await agree_on_service(record(), service) == record()
    [written] = service.written
    found = json.loads(written)
    assert found["schema"] == "service.v1"
    assert found["scope_fields"] == ["project_id", "user_id"]
    assert len(found["scope_schema_hash"]) == 64
    assert found["boundary"] == ["user_id"]
    assert found["partitions"] == 4
    assert found["topic_prefix"] == "memory."
    assert {"turn.v1", "command.v1", "consolidate.v1", "remembered.v1", "learned.v1"} <= set(found["schemas"])
    assert "retrieve.v1" not in found["schemas"]


async def test_later_start_with_the_same_settings_writes_nothing() -> None:
    service = FakeDeploymentLog()
    await agree_on_service(record(), service)
    await agree_on_service(record(), service)
    assert len(service.written) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"scope_model": AGENTS},
            "SCOPE_MODEL: the deployment of memory.service was created with scopes of project_id, user_id, not",
        ),
        ({"partitions": 8}, "PARTITIONS: the deployment of memory.service was created with 4 partitions, not 8"),
        (
            {"topic_prefix": "m."},
            "TOPIC_PREFIX: the deployment of memory.service was created with the prefix memory., not",
        ),
    ],
)
async def test_other_settings_are_refused_with_both_values(settings: dict[str, Any], message: str) -> None:
    service = FakeDeploymentLog()
    await agree_on_service(record(), service)
    refused = await refusal(record(**settings), service)
    assert message in refused
    assert "migrate" in refused
    assert service.written == [value(record())]


async def test_first_record_counts_where_two_workers_start_at_once() -> None:
    service = FakeDeploymentLog()
    service.before_write = lambda: service.written.append(value(record())) if not service.written else None
    assert "not agent_id" in await refusal(record(scope_model=AGENTS), service)
    assert await agree_on_service(record(), service) == record()


async def test_record_that_counts_is_the_last_one_for_compaction() -> None:
    service = FakeDeploymentLog()
    service.written.extend([value(record()), value(record(scope_model=AGENTS))])
    await refusal(record(scope_model=AGENTS), service)
    assert service.written[-1] == value(record())


async def test_later_release_adds_the_schemas_that_it_writes() -> None:
    service = FakeDeploymentLog()
    earlier = record().model_copy(update={"schemas": ("turn.v1",)})
    service.written.append(value(earlier))
    assert await agree_on_service(record(), service) == record()
    assert service.written == [value(earlier), value(record())]


async def test_earlier_release_is_refused_where_topics_hold_later_schemas() -> None:
    service = FakeDeploymentLog()
    service.written.append(value(record().with_schemas(["turn.v2"])))
    refused = await refusal(record(), service)
    assert "written by a later release" in refused
    assert "turn.v2" in refused


@pytest.mark.parametrize("written", [b"nonsense", b'{"schema":"service.v2"}', b'{"schema":"service.v1"}'])
async def test_unreadable_record_is_refused_and_kept(written: bytes) -> None:
    service = FakeDeploymentLog()
    service.written.append(written)
    assert "memory.service has a record that this release can't read" in await refusal(record(), service)
    assert service.written == [written]


async def test_unknown_fields_of_a_record_are_ignored() -> None:
    service = FakeDeploymentLog()
    service.written.append(json.dumps({**json.loads(value(record())), "later": 1}).encode())
    assert await agree_on_service(record(), service) == record()


def test_hash_of_the_scope_is_that_of_data_directories() -> None:
    # As in `scope.json` of directories that exist.
    assert record().scope_schema_hash == "77a0d039050b404ecb3455ec69f55ba2657aae1cfe7c1a4f5569debfff30b171"
    assert record(scope_model=Scope) == record()


@pytest.mark.parametrize("state", ["pausing", "withdrawn", "serving"])
async def test_worker_of_a_replaced_deployment_serves_while_its_topics_are_there(state: SuccessorState) -> None:
    service = FakeDeploymentLog()
    service.put(SUCCESSOR_KEY, Successor(state=state, topic_prefix="memory2."))
    assert await agree_on_service(record(), service) == record()


async def test_worker_of_a_deployment_without_topics_is_refused() -> None:
    service = FakeDeploymentLog()
    service.put(SUCCESSOR_KEY, Successor(state="dropped", topic_prefix="memory2."))
    assert "set MODESTREAM_TOPIC_PREFIX=memory2." in await refusal(record(), service)
    assert service.written == []
