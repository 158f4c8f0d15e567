"""Permission to operate: by the policy, or without one for callers of a gateway without keys alone."""

from pathlib import Path

import pytest

from tests.worlds.guarded_gateway import gateway_of, write_keys
from tests.worlds.in_memory_pipeline import InMemoryPipeline

EDIT = {"edits": [{"op": "config", "step_id": "retrieve.rerank", "config": {"candidates": 5}}]}


async def test_caller_of_a_gateway_without_keys_may_operate(pipeline: InMemoryPipeline) -> None:
    async with gateway_of(pipeline, policy=None) as gateway:
        answered = await gateway.ask("POST", "/v1/pipelines/edits", json=EDIT)
        shown = await gateway.ask("GET", "/v1/pipelines")
    assert answered.status_code == 200
    assert answered.json()["author"] == "operator"
    assert shown.json()["running"] == 1
    assert shown.json()["refused"] is None


@pytest.mark.parametrize("principal", ["app", "operator"])
async def test_key_without_a_policy_may_not_operate(pipeline: InMemoryPipeline, tmp_path: Path, principal: str) -> None:
    write_keys(tmp_path / "keys.json", principal)
    async with gateway_of(pipeline, tmp_path / "keys.json", policy=None) as gateway:
        refused = await gateway.ask("POST", "/v1/pipelines/edits", principal, json=EDIT)
        assert (await gateway.ask("GET", "/v1/users", principal)).status_code == 200
    assert refused.status_code == 403
    assert refused.json()["code"] == "not_allowed"
    assert gateway.wire.sent == []
