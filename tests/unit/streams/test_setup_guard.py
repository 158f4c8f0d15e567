"""With what a deployment makes its answers: recorded, and compared where workers must have the same."""

import asyncio
import json
from typing import Any

import pytest

from schemas.internal.service import SETUP_KEY, Setup, SpaceRecord
from streams.bootstrap.deployment_records import RecordedSpaces, agree_on_setup, setup_of
from streams.settings import Settings
from tests.builders.taxonomies import SHIPPED, changed
from tests.fakes.deployment_log import FakeDeploymentLog
from tests.fakes.embedder import FakeEmbedder

OTHER = {"version": "ours", "modes.LEARNING.drop_recent": False}


def setup(tables: dict[str, Any] | None = None, **settings: Any) -> Setup:
    taxonomy = SHIPPED if tables is None else type(SHIPPED).loads(changed(tables))
    return setup_of(Settings(_env_file=None, **settings), taxonomy)


def empty() -> FakeDeploymentLog:
    return FakeDeploymentLog(SETUP_KEY)


async def refusal(own: Setup, log: FakeDeploymentLog) -> str:
    with pytest.raises(SystemExit) as refused:
        await agree_on_setup(own, log)
    return str(refused.value.code)


async def test_setup_names_index_providers_taxonomy_and_categories() -> None:
    log = empty()
    profiles = {"default": {"model": "openai/gpt-x", "api_base": "http://10.0.0.7", "api_key_env": "SECRET"}}
    await agree_on_setup(setup(llm_profiles=profiles, categories={"health": ""}), log)
    [written] = map(json.loads, log.written)
    assert written["vector_index"] == "embedded"
    assert written["providers"] == {"default": {"model": "openai/gpt-x", "roles": []}}
    assert written["taxonomy"]["version"] == "1.0"
    assert len(written["taxonomy"]["digest"]) == 12
    assert len(written["categories"]) == 12


async def test_same_setup_is_recorded_once() -> None:
    log = empty()
    await agree_on_setup(setup(), log)
    await agree_on_setup(setup(), log)
    assert len(log.written) == 1


async def test_other_provider_is_recorded_without_a_refusal() -> None:
    log = empty()
    await agree_on_setup(setup(), log)
    own = setup(llm_profiles={"default": {"model": "fake/model"}})
    assert await agree_on_setup(own, log) == own
    assert len(log.written) == 2


async def test_worker_with_other_tables_is_refused_with_both_versions_and_the_way_out() -> None:
    log = empty()
    await agree_on_setup(setup(), log)
    refused = await refusal(setup(OTHER), log)
    assert "MODESTREAM_TAXONOMY: the deployment of memory.service has the tables '1.0'" in refused
    assert "this worker has 'ours'" in refused
    assert '"replaces": ["1.0"]' in refused
    assert len(log.written) == 1


async def test_other_tables_of_the_same_version_are_refused() -> None:
    log = empty()
    await agree_on_setup(setup(), log)
    assert "another `version`" in await refusal(setup({**OTHER, "version": "1.0"}), log)


async def test_tables_that_replace_those_of_the_deployment_count_from_then_on() -> None:
    log = empty()
    await agree_on_setup(setup(), log)
    await agree_on_setup(setup({**OTHER, "replaces": ["1.0"]}), log)
    assert "has the tables 'ours'" in await refusal(setup(), log)


async def test_of_two_workers_that_start_at_once_with_other_tables_the_first_goes_on() -> None:
    log = empty()
    log.before_write = lambda: log.put(SETUP_KEY, setup()) if not log.written else None
    await refusal(setup(OTHER), log)
    assert Setup.model_validate_json(log.written[-1]) == setup()


async def test_space_of_vectors_is_recorded_under_its_digest() -> None:
    log, fingerprint = FakeDeploymentLog(), FakeEmbedder("tiny", 32).fingerprint
    spaces = RecordedSpaces(log)
    recording = asyncio.create_task(spaces.run())
    spaces.note(fingerprint)
    spaces.note(fingerprint)
    while not (written := (await log.values()).get(b"space/" + fingerprint.digest.encode(), [])):
        await asyncio.sleep(0)
    recording.cancel()
    assert [SpaceRecord.model_validate_json(value).embedder for value in written] == ["tiny"]


async def test_recorded_spaces_resolve_to_names_after_a_restart() -> None:
    record = SpaceRecord(space="d3", embedder="general", dim=384, precision="int8")
    log = FakeDeploymentLog()
    log.put(record.key, record)
    spaces = RecordedSpaces(log)
    await spaces.read()
    assert spaces.names() == {"d3": "general"}
