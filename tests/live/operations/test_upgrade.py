"""Today's `up` on a data directory of 1.0.0, whose processes were killed while turns arrived.

`tests.builders.release_data` makes the archive. Without one the directory is made here, by this commit's code.
"""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from modestream_client import MemoryClient

from schemas.internal.service import MODEL_KEY, RELEASE_KEY, ModelRecord, Release, ServiceRecord
from schemas.state.modes import ENGLISH_EMBEDDER
from streams.adapters.kafka.deployment_log import read_values
from streams.bootstrap.deployment_records import OWN, service_record
from streams.deployment_log import readable
from streams.settings import Settings
from tests.builders.release_data import LATE_USER, SAID, USERS, dead_letters, hits, make, memories, seen_by, until_ready
from tests.worlds.live.processes import ROOT
from tests.worlds.live.streams_up import running_up

FIRST_RELEASE = ROOT / "tests" / "data" / "release_1_0_0"

Json = dict[str, Any]


@pytest.fixture
async def seen(models: Path, tmp_path: Path) -> Json:
    """Make the data directory `tmp_path / "data"`; return what its release showed."""
    if not FIRST_RELEASE.exists():
        (tmp_path / "data").mkdir()
        return await make(ROOT, models, tmp_path / "data")
    with tarfile.open(FIRST_RELEASE / "data.tar.xz") as archive:
        # An archive of ours; Python 3.11 has `filter` from 3.11.4 on.
        archive.extractall(tmp_path / "data")
    shown: Json = json.loads((FIRST_RELEASE / "seen.json").read_text())
    return shown


async def test_data_directory_of_the_first_release_is_read(seen: Json, models: Path, tmp_path: Path) -> None:
    with running_up(ROOT, tmp_path / "data", models) as up:
        await up.ready()
        async with MemoryClient(up.bootstrap, timeout=60) as client:
            await until_ready(client)
            for user in USERS:
                assert comparable(await seen_by(client, user)) == comparable(seen["users"][user])
            assert await dead_letters(up.bootstrap) == seen["dead_letters"]
            late = [
                memory["turn_id"]
                for memory in (await memories(client, LATE_USER)).values()
                if memory["type"] == "episodic"
            ]
            assert sorted(late) == sorted(seen["acknowledged"])
            await _is_of_this_release(client, up.bootstrap)
            await _goes_on(client)
        assert await up.end() == 0


def comparable(seen: Json) -> Json:
    """Keep the best hit of each question, since weaker ones are those of a release's ranking."""
    return {**seen, "hits": {asked: ids[:1] for asked, ids in seen["hits"].items()}}


async def _is_of_this_release(client: MemoryClient, bootstrap: str) -> None:
    health = (await client.health(user_id="ana")).model_dump()
    assert health["vector_index"] == "ready"
    assert health["rebuilt"] == []
    agreed = ServiceRecord.model_validate(health["service"])
    assert {*agreed.schemas} >= {*service_record(Settings(_env_file=None)).schemas}
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        assert await consumer.topics() >= {"memory.pipelines", "memory.runs"}
    deployment = Settings(_env_file=None, broker=f"kafka://{bootstrap}")
    recorded = await read_values(deployment)
    assert readable(recorded[RELEASE_KEY], Release) == [OWN], "the data of the former one had no record"
    models = [values for key, values in recorded.items() if key.startswith(MODEL_KEY)]
    assert {model.embedder for values in models for model in readable(values, ModelRecord)} >= {ENGLISH_EMBEDDER}


async def _goes_on(client: MemoryClient) -> None:
    """What is written now is beside what the first release has written; what it forgot is not written again."""
    said = await client.remember("The harbour has a second crane.", turn_id="new", user_id="ana")
    edited = await client.remember(
        "The deploy target is render now.", turn_id="ana-0", conversation_id="work", user_id="ana"
    )
    assert edited.version == 3
    await until_ready(client)
    assert (await hits(client, "the crane at the harbour", "ana"))[0] == said.memory_id
    assert (await hits(client, "what is the deploy target?", "ana"))[0] == edited.memory_id
    again = await client.remember(SAID[9][0], turn_id="ana-9", conversation_id="home", user_id="ana")
    assert [warning.code for warning in again.warnings] == ["forgotten"]
