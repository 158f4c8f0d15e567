"""How long logs keep texts: by default for ever; what the settings ask for, in Kafka's settings."""

from pathlib import Path

import pytest

from streams.bootstrap.worker_topics import TopicSettings
from streams.settings import Settings
from streams.topics import (
    CHANGELOG,
    RETENTION_SETTINGS,
    LogRetention,
    kept_hours,
    repaired_settings,
    topic_configs,
    topics_with_prefix,
)

TOPICS = topics_with_prefix("memory.")
CHANGELOG_TOPIC = "memory.worker-memories-changelog"
HOUR_S = 3600.0
HOUR_MS = 3600 * 1000


def topic_settings(**hours: float) -> TopicSettings:
    settings = Settings(data_dir=Path("nowhere"), **hours)  # type: ignore[arg-type]
    return TopicSettings(TOPICS, {CHANGELOG_TOPIC}, settings, LogRetention.of(settings))


def test_by_default_nothing_differs() -> None:
    settings = topic_settings()
    configs = topic_configs(TOPICS, kept_hours(settings.settings))
    assert settings.wanted() == configs | {CHANGELOG_TOPIC: CHANGELOG}
    assert not TOPICS.inputs() & settings.corrected().keys()
    dead_letters = settings.corrected()[TOPICS.dead_letters]
    assert dead_letters.keys() <= set(repaired_settings(TOPICS, TOPICS.dead_letters))
    assert LogRetention.of(settings.settings).turns_kept_s is None


def test_kept_turns_get_short_segments_and_no_retention_time() -> None:
    """Kafka itself would delete turns that no worker has handled."""
    corrected = topic_settings(turns_kept_hours=16).corrected()
    assert corrected[TOPICS.turns] == {"segment.ms": str(2 * HOUR_MS)}
    assert corrected[TOPICS.remembered]["segment.ms"] == str(3 * HOUR_MS)
    assert corrected[CHANGELOG_TOPIC].keys() & {"segment.ms"} == set()
    assert TOPICS.retrieve not in corrected


def test_erasure_bounds_everything_that_has_texts() -> None:
    settings = topic_settings(erase_within_hours=8, turns_kept_hours=48, events_kept_hours=24)
    retention = LogRetention.of(settings.settings)
    assert retention.turns_kept_s == 2 * HOUR_S
    assert retention.events_kept_s == 2 * HOUR_S
    wanted = settings.wanted()
    assert wanted[TOPICS.retrieve]["retention.ms"] == wanted[TOPICS.replies]["retention.ms"] == str(4 * HOUR_MS)
    for compacted in (CHANGELOG_TOPIC, TOPICS.archive):
        assert wanted[compacted]["max.compaction.lag.ms"] == str(2 * HOUR_MS)
        assert wanted[compacted]["segment.ms"] == str(HOUR_MS)
    for kept in (TOPICS.commands, TOPICS.dead_letters, TOPICS.service, TOPICS.pipelines):
        assert wanted[kept] == topic_configs(TOPICS, kept_hours(settings.settings))[kept]
    assert set(RETENTION_SETTINGS) & settings.corrected()[TOPICS.turns].keys() == {"segment.ms"}


def test_shorter_settings_than_an_erasure_count() -> None:
    retention = LogRetention.of(Settings(erase_within_hours=24, turns_kept_hours=1, events_kept_hours=0.5))
    assert retention.turns_kept_s == HOUR_S
    assert retention.events_kept_s == HOUR_S / 2


@pytest.mark.parametrize("hours", [0.5, 2, 24, 720])
def test_what_is_forgotten_is_gone_in_time(hours: float) -> None:
    """The longest way: a turn is kept, archived by the next pass, and its segment ends with the filler after next."""
    retention = LogRetention.of(Settings(erase_within_hours=hours))
    assert retention.turns_kept_s is not None
    assert retention.erasure_interval_s is not None
    of_turns = topic_settings(erase_within_hours=hours).wanted()[TOPICS.turns]
    segment_s = int(of_turns["segment.ms"]) / 1000
    brokers_s = 5 * 60 + 60
    left_s = retention.turns_kept_s + retention.pass_interval_s + segment_s + retention.erasure_interval_s + brokers_s
    assert left_s <= hours * HOUR_S
    lag_s = int(topic_settings(erase_within_hours=hours).wanted()[CHANGELOG_TOPIC]["max.compaction.lag.ms"]) / 1000
    segment_s = int(topic_settings(erase_within_hours=hours).wanted()[CHANGELOG_TOPIC]["segment.ms"]) / 1000
    assert segment_s + retention.erasure_interval_s + lag_s + brokers_s <= hours * HOUR_S
