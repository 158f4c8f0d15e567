"""Python values as JSON records; places of records as text."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from modestream_client import MemoryServiceError, Written
from modestream_client.records import build_record


def test_times_keep_their_zone_at_any_depth() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=1)))
    written = build_record("turn.v1", occurred_at=noon, metadata={"seen": [noon.astimezone(UTC)]})
    assert written["occurred_at"] == "2026-03-01T12:00:00+01:00"
    assert written["metadata"] == {"seen": ["2026-03-01T11:00:00+00:00"]}


def test_naive_time_is_rejected_at_any_depth() -> None:
    with pytest.raises(ValueError, match="time zone"):
        build_record("turn.v1", metadata={"seen": [datetime(2026, 3, 1)]})  # noqa: DTZ001


def test_string_stays_a_string_and_a_sequence_becomes_a_list() -> None:
    assert build_record("retrieve.v1", mode="*", types=("episodic", "semantic")) == {
        "schema": "retrieve.v1",
        "mode": "*",
        "types": ["episodic", "semantic"],
    }


def test_absent_fields_are_null() -> None:
    assert build_record("turn.v1", speaker=None, importance=0.5) == {
        "schema": "turn.v1",
        "speaker": None,
        "importance": 0.5,
    }


def test_place_survives_the_way_through_text() -> None:
    assert Written.parse(Written(3, 17).read_after) == (3, 17)


@pytest.mark.parametrize(
    "text", ["", "soon", "3", "3:", ":3", "-1:3", "3:-1", "3:1.5", " 3:1", "3:1\n", "\u0663:\u0661", "9" * 5000 + ":1"]
)
def test_other_text_is_an_invalid_value(text: str) -> None:
    with pytest.raises(MemoryServiceError) as refused:
        Written.parse(text)
    assert refused.value.code == "invalid_value"
    assert refused.value.field == "read_after"
    assert len(str(refused.value)) < 200
