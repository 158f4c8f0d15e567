"""Contexts found by the time in their ids, also where clocks differ; what logs still have of forgotten turns."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from schemas.messages.published import LoggedContext
from schemas.messages.records import Outgoing, Record
from streams.adapters.kafka.clients import ensure_topics
from streams.adapters.kafka.logs import KafkaContextLog, KafkaForgottenLogs
from streams.adapters.kafka.publisher import KafkaPublisher
from streams.observability.metrics import Meters
from streams.settings import Settings
from streams.topics import topic_configs, topics_with_prefix
from streams.wire.archived_turns import archived_turn, forgotten_turn
from tests.worlds.live.broker import RunningBroker

NOW_MS = round(time.time() * 1000)
CLOCKS_MS = {"same": 0, "an hour behind": -3_600_000, "an hour ahead": 3_600_000}
"""Clocks of workers, beside that of the broker."""


def id_of(name: str) -> str:
    at = NOW_MS + CLOCKS_MS[name]
    return str(UUID(int=at << 80 | 7 << 76 | 2 << 62 | len(name)))


def context(context_id: str) -> bytes:
    logged = LoggedContext(
        context_id=context_id,
        scope={"user_id": "u1", "project_id": "p1"},
        at=datetime.now(UTC),
        kind="assemble",
        mode="general",
        interaction_mode="GENERAL",
        revision=0,
        query_sha256="",
    )
    return logged.model_dump_json(by_alias=True).encode()


@pytest.fixture
async def settings(live_broker: RunningBroker, prefix: str, tmp_path: Path) -> AsyncIterator[Settings]:
    """A deployment with a context by each clock among others, and an archive with a turn and a forgotten one."""
    settings = Settings(broker=live_broker.bootstrap, data_dir=tmp_path, topic_prefix=prefix, partitions=1)
    topics = topics_with_prefix(settings.topic_prefix)
    await ensure_topics(settings, topic_configs(topics, {}))
    publisher = KafkaPublisher(settings.kafka_connection, topics.replies, topics.dead_letters, Meters())
    await publisher.start()
    ids = [*map(id_of, CLOCKS_MS), *(str(uuid4()) for _ in range(200))]
    sent = [await publisher.send(Outgoing(topics.contexts, b"u1", context(each))) for each in ids]
    forgotten = forgotten_turn("t-1", {"user_id": "u1"}, "c1", "user", None)
    for memory_id, value in (("kept", b'{"content": "tea"}'), ("gone", b'{"content": "tea"}'), ("gone", forgotten)):
        record = Record("", 0, 0, NOW_MS, b"u1", value)
        sent.append(await publisher.send(archived_turn(topics.archive, memory_id, record)))
    await asyncio.gather(*sent)
    yield settings
    await publisher.stop()


async def test_a_context_is_found_whatever_the_clocks(settings: Settings) -> None:
    log = KafkaContextLog(settings)
    for name in CLOCKS_MS:
        found = await log.find(0, "u1", id_of(name))
        assert found is not None, name
        assert found.context_id == id_of(name)


async def test_what_is_not_there_is_not_found(settings: Settings) -> None:
    log = KafkaContextLog(settings)
    unknown = str(UUID(int=(NOW_MS - 10_000) << 80 | 7 << 76 | 2 << 62))
    for boundary, context_id in (("u1", unknown), ("u2", id_of("same")), ("u1", "no id"), ("u1", str(uuid4()))):
        assert await log.find(0, boundary, context_id) is None


async def test_the_archive_has_the_text_of_what_was_not_forgotten(settings: Settings) -> None:
    logs = KafkaForgottenLogs(settings, [])
    assert await logs.archived_texts(0, ["kept", "gone", "never"]) == {"kept"}


async def test_a_compacted_log_is_erased_until_the_first_record_that_another_replaces(settings: Settings) -> None:
    logs = KafkaForgottenLogs(settings, [])
    archive = f"{topics_with_prefix(settings.topic_prefix).archive}:0"
    assert (await logs.ends(0))[archive] == 3
    assert (await logs.erased_until(0))[archive] == 1
