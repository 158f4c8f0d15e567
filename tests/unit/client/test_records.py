"""How Python values are written as records."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from streams.client.records import build_record


def test_times_are_written_with_their_zone_wherever_they_are() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=1)))
    written = build_record("turn.v1", occurred_at=noon, metadata={"seen": [noon.astimezone(UTC)]})
    assert written["occurred_at"] == "2026-03-01T12:00:00+01:00"
    assert written["metadata"] == {"seen": ["2026-03-01T11:00:00+00:00"]}


def test_a_time_without_a_zone_is_refused_wherever_it_is() -> None:
    with pytest.raises(ValueError, match="time zone"):
        build_record("turn.v1", metadata={"seen": [datetime(2026, 3, 1)]})  # noqa: DTZ001


def test_one_name_stays_one_name_and_several_become_a_list() -> None:
    assert build_record("retrieve.v1", mode="*", types=("episodic", "semantic")) == {
        "schema": "retrieve.v1",
        "mode": "*",
        "types": ["episodic", "semantic"],
    }


def test_what_is_absent_is_null() -> None:
    assert build_record("turn.v1", speaker=None, importance=0.5) == {
        "schema": "turn.v1",
        "speaker": None,
        "importance": 0.5,
    }
