from pathlib import Path

import pytest
from aiokafka import codec as codecs

from streams.runtime.kafka_app import create_kafka_app
from streams.settings import Settings
from streams.tables.memory_tables import MemoryTable
from streams.topics import (
    CHANGELOG,
    COMPRESSION,
    MAX_INPUT_BYTES,
    group_id,
    repaired_settings,
    topic_config,
    topics_with_prefix,
)

OURS = ["changes", "remembered", "understood", "embedded", "learned", "consolidated"]
"""Topics between agents."""

EVENTS = ["turns", "commands", "consolidate", "dead_letters", *OURS]


def test_names_follow_the_contract() -> None:
    topics = topics_with_prefix("memory.")
    assert topics.turns == "memory.turns"
    assert topics.retrieve == "memory.retrieve"
    assert topics.commands == "memory.commands"
    assert topics.consolidate == "memory.consolidate"
    assert topics.replies == "memory.replies"
    assert topics.dead_letters == "memory.dead-letters"


def test_prefixes_share_no_topic_and_no_group() -> None:
    first, second = topics_with_prefix("one."), topics_with_prefix("other.")
    assert not set(first.all()) & set(second.all())
    assert len(set(first.all())) == len(first.all()) == 21
    assert group_id(Settings(topic_prefix="one.")) != group_id(Settings(topic_prefix="other."))


@pytest.mark.parametrize("name", EVENTS)
def test_events_have_no_retention_limit(name: str) -> None:
    topics = topics_with_prefix("memory.")
    config = topic_config(topics, getattr(topics, name))
    assert config["retention.ms"] == "-1"
    assert config["cleanup.policy"] == "delete"


@pytest.mark.parametrize("name", ["retrieve", "replies"])
def test_requests_and_replies_have_a_retention_time(name: str) -> None:
    topics = topics_with_prefix("memory.")
    assert int(topic_config(topics, getattr(topics, name))["retention.ms"]) > 0


def test_run_records_are_kept_as_long_as_the_setting_says_and_in_shorter_segments() -> None:
    topics = topics_with_prefix("memory.")
    config = topic_config(topics, topics.runs, {"runs": 24})
    assert config["retention.ms"] == str(24 * 3600 * 1000)
    assert int(config["segment.ms"]) == 3 * 3600 * 1000
    assert "retention.ms" in repaired_settings(topics, topics.runs)
    assert "retention.ms" not in repaired_settings(topics, topics.dead_letters)


@pytest.mark.parametrize("name", ["service", "boundaries", "archive"])
def test_last_record_of_each_key_is_kept_for_ever(name: str) -> None:
    topics = topics_with_prefix("memory.")
    assert getattr(topics, name) == f"memory.{name}"
    config = topic_config(topics, getattr(topics, name))
    assert config["cleanup.policy"] == "compact"
    assert "retention.ms" not in config


def test_workers_do_not_consume_what_they_tell() -> None:
    topics = topics_with_prefix("memory.")
    told = {topics.replies, topics.dead_letters, topics.boundaries, topics.service, topics.pipelines, topics.runs}
    told |= {topics.archive, topics.contexts, topics.receipts}
    assert not told & set(topics.consumed())
    assert len(topics.consumed()) == len(topics.all()) - 9


def test_largest_input_fits_into_a_dead_letter() -> None:
    topics = topics_with_prefix("memory.")
    for name in (topics.turns, topics.retrieve, topics.commands, topics.consolidate):
        assert int(topic_config(topics, name)["max.message.bytes"]) == MAX_INPUT_BYTES
    for name in (topics.dead_letters, topics.replies, *(getattr(topics, ours) for ours in OURS)):
        assert int(topic_config(topics, name)["max.message.bytes"]) == 2 * MAX_INPUT_BYTES


@pytest.mark.parametrize("name", ["turns", "retrieve", "commands", "consolidate"])
def test_inputs_are_stored_uncompressed(name: str) -> None:
    topics = topics_with_prefix("memory.")
    assert topic_config(topics, getattr(topics, name))["compression.type"] == "uncompressed"


def test_any_client_can_read_which_deployment_serves() -> None:
    topics = topics_with_prefix("memory.")
    assert topic_config(topics, topics.service)["compression.type"] == "uncompressed"
    assert "compression.type" in repaired_settings(topics, topics.service)


def test_changelog_settings_equal_those_of_faust(tmp_path: Path) -> None:
    app = create_kafka_app(Settings(data_dir=tmp_path), "w1")
    topic = MemoryTable(app).table.changelog_topic
    assert app.tables.changelog_topics == {topic.get_topic_name()}
    assert topic.compacting is True
    assert topic.deleting is None
    assert topic.retention is None
    assert {"cleanup.policy": "compact", **(topic.config or {})} == CHANGELOG


def test_changelog_records_are_packed(tmp_path: Path) -> None:
    assert create_kafka_app(Settings(data_dir=tmp_path), "w1").conf.producer_compression_type == COMPRESSION


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_all_codecs_are_installed(codec: str) -> None:
    assert getattr(codecs, f"has_{codec}")()
