"""How long the logs of a deployment keep texts: what the settings ask for, and Kafka's settings that follow. Pure.

Enters: the settings. Leaves: times for the worker, and settings of topics that differ from those in `streams.topics`.
Guaranteed: without `TURNS_KEPT_HOURS` and `ERASE_WITHIN_HOURS` nothing differs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from streams.settings import Settings
from streams.topics import MIN_SEGMENT_MS, REQUEST_RETENTION_MS, Topics

MAX_PASS_INTERVAL_S = 600.0
"""The pause between two passes over the logs; each takes some requests to the broker."""

MIN_PASS_INTERVAL_S = 1.0

PASSES_PER_PERIOD = 16
"""Passes within the time that turns are kept, or a text may be left: late by a sixteenth of it at most."""

SEGMENTS_PER_PERIOD = 8
"""Kafka deletes and compacts whole segments that are no longer written to: what is too old stays an eighth longer."""

ERASED_BY_QUARTERS = 4
"""A quarter of the time of an erasure is that in which turns and events are kept, and another one that in which a
changelog is left uncompacted; what is left is for segments, and for the broker's own intervals, some six minutes."""


@dataclass(frozen=True, slots=True)
class LogRetention:
    """Times in seconds. `turns_kept_s` None: turns are kept for ever; `erased_s` None: nothing is erased by a time."""

    turns_kept_s: float | None
    events_kept_s: float
    erased_s: float | None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return what the settings ask for. An erasure limits how long turns and events are kept."""
        erased_s = _seconds(settings.erase_within_hours)
        kept_s = _seconds(settings.turns_kept_hours)
        events_s = settings.events_kept_hours * 3600
        if erased_s is None:
            return cls(kept_s, events_s, None)
        quarter_s = erased_s / ERASED_BY_QUARTERS
        return cls(min(quarter_s, quarter_s if kept_s is None else kept_s), min(quarter_s, events_s), erased_s)

    @property
    def pass_interval_s(self) -> float:
        """The pause between two passes over the logs."""
        periods = [period_s for period_s in (self.turns_kept_s, self.erased_s) if period_s is not None]
        shortest = min(periods, default=MAX_PASS_INTERVAL_S * PASSES_PER_PERIOD)
        return min(MAX_PASS_INTERVAL_S, max(MIN_PASS_INTERVAL_S, shortest / PASSES_PER_PERIOD))

    @property
    def erasure_interval_s(self) -> float | None:
        """The pause between two erasures; None: nothing is erased."""
        return None if self.erased_s is None else self.erased_s / SEGMENTS_PER_PERIOD

    def topic_settings(self, topics: Topics, topic: str) -> Mapping[str, str]:
        """Return the settings in which a topic differs from `streams.topics.topic_config`."""
        kept_s = self.turns_kept_s if topic == topics.turns else self.events_kept_s
        if topic == topics.turns or topic in topics.internal_events():
            return {} if self.turns_kept_s is None or kept_s is None else {"segment.ms": _segment_ms(kept_s)}
        if self.erased_s is None:
            return {}
        if topic in (topics.retrieve, topics.replies):
            kept_ms = min(REQUEST_RETENTION_MS, round(self.erased_s / 2 * 1000))
            return {"retention.ms": str(kept_ms), "segment.ms": _segment_ms(self.erased_s)}
        return {} if topic in topics.kept_whole() else self.changelog_settings()

    def changelog_settings(self) -> Mapping[str, str]:
        """Return the settings in which a changelog differs."""
        if self.erased_s is None:
            return {}
        lag_ms = round(self.erased_s / ERASED_BY_QUARTERS * 1000)
        return {"max.compaction.lag.ms": str(lag_ms), "segment.ms": _segment_ms(self.erased_s)}


def _segment_ms(period_s: float) -> str:
    return str(max(round(period_s / SEGMENTS_PER_PERIOD * 1000), MIN_SEGMENT_MS))


def _seconds(hours: float | None) -> float | None:
    return None if hours is None else hours * 3600
