"""Today's `up` on a data directory of the previous release, whose processes were killed while turns arrived."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from modestream_client import MemoryClient

from schemas.internal.model_record import MODEL_KEY, ModelRecord
from schemas.internal.release import RELEASE_KEY, Release
from schemas.internal.service import ServiceRecord
from schemas.state.modes import ENGLISH_EMBEDDER
from streams.adapters.kafka.service_entries import entries_of
from streams.adapters.kafka.service_log import SERVICE_PARTITION
from streams.adapters.kafka.topic_reading import read_to_end
from streams.bootstrap.release_guard import OWN
from streams.bootstrap.service_guard import service_record
from streams.settings import Settings
from tests.builders.previous_release import LATE_USER, SAID, USERS, dead_letters, hits, memories, seen_by, until_ready
from tests.worlds.live.processes import ROOT
from tests.worlds.live.streams_up import StreamsUp, running_up

PREVIOUS = ROOT / "tests" / "data" / "previous_release"

Json = dict[str, Any]


@pytest.fixture
def up(models: Path, tmp_path: Path) -> Iterator[StreamsUp]:
    with tarfile.open(PREVIOUS / "data.tar.xz") as archive:
        # An archive of ours; Python 3.11 has `filter` from 3.11.4 on.
        archive.extractall(tmp_path / "data")
    with running_up(ROOT, tmp_path / "data", models) as running:
        yield running


async def test_data_directory_of_the_previous_release_is_read(up: StreamsUp) -> None:
    seen: Json = json.loads((PREVIOUS / "seen.json").read_text())
    await up.ready()
    async with MemoryClient(up.bootstrap, timeout=60) as client:
        await until_ready(client)
        for user in USERS:
            assert comparable(await seen_by(client, user)) == comparable(seen["users"][user])
        assert await dead_letters(up.bootstrap) == seen["dead_letters"]
        late = [one["turn_id"] for one in (await memories(client, LATE_USER)).values() if one["type"] == "episodic"]
        assert sorted(late) == sorted(seen["acknowledged"])
        await _is_of_this_release(client, up.bootstrap)
        await _goes_on(client)
    assert await up.end() == 0


def comparable(seen: Json) -> Json:
    """Keep the best hit of each question, since weaker ones are those of a release's ranking, and no times of vectors.

    Vectors are made again by the release that cuts long turns, as their fingerprint has changed.
    """
    hits = {asked: found[:1] for asked, found in seen["hits"].items()}
    memories = {memory_id: {**one, "embedded_at": None} for memory_id, one in seen["memories"].items()}
    return {**seen, "hits": hits, "memories": memories}


async def _is_of_this_release(client: MemoryClient, bootstrap: str) -> None:
    health = (await client.health(user_id="ana")).model_dump()
    assert health["vector_index"] == "ready"
    assert health["rebuilt"] == []
    agreed = ServiceRecord.model_validate(health["service"])
    assert {*agreed.schemas} >= {*service_record(Settings(_env_file=None)).schemas}
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        assert await consumer.topics() >= {"memory.pipelines", "memory.runs"}
    deployment = Settings(_env_file=None, broker=f"kafka://{bootstrap}")
    records = await read_to_end(deployment, "memory.service", [SERVICE_PARTITION])
    assert [*entries_of(records, RELEASE_KEY, Release)] == [OWN], "the data of the former one had no record"
    assert {one.embedder for one in entries_of(records, MODEL_KEY, ModelRecord)} >= {ENGLISH_EMBEDDER}


async def _goes_on(client: MemoryClient) -> None:
    """What is written now is beside what the previous release has written; what it forgot is not written again."""
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
