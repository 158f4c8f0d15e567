"""Kept maps, and the sample that a map has room for."""

from datetime import UTC, datetime

import numpy as np
import pytest

from agents.rules.index.columns import MISSING, ColumnArrays, IntArray
from agents.rules.maps import layout as map_layout
from agents.rules.maps.layout import MapLayout, Places, lay_out_from, sample_memories
from schemas.models.vectors import Matrix

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def rows_of(count: int, seed: int = 1) -> Matrix:
    drawn = np.random.default_rng(seed).standard_normal((count, 8)).astype(np.float32)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float32)


def places_of(count: int) -> Places:
    return np.random.default_rng(2).uniform(-1, 1, (count, 2)).astype(np.float32)


def ids_of(count: int, start: int = 0) -> list[str]:
    return [f"m{number}" for number in range(start, start + count)]


def layout_of(count: int, total: int | None = None) -> MapLayout:
    return MapLayout.new(ids_of(count), places_of(count), total or count, NOW)


def columns_of(conversations: list[int]) -> ColumnArrays:
    """Columns of memories a minute apart."""
    columns = ColumnArrays.empty(len(conversations))
    columns.live[:] = True
    columns.conversations[:] = conversations
    columns.occurred_ms[:] = np.arange(len(conversations)) * 60_000
    columns.source[:] = np.arange(len(conversations))
    return columns


def test_map_without_a_point_keeps_the_others_where_they_are() -> None:
    whole = layout_of(5).extended(["late"], places_of(1))
    left = whole.without(["m2", "unknown"])
    assert left.ids == ("m0", "m1", "m3", "m4", "late")
    assert left.laid_out == 5
    assert left.remaining == 4
    assert left.places.tolist() == whole.places[[whole.rows()[memory_id] for memory_id in left.ids]].tolist()
    assert whole.without(["unknown"]) is whole


@pytest.mark.parametrize(("now", "grown"), [(100, False), (124, False), (125, True), (500, True), (60, False)])
def test_map_is_laid_out_again_when_a_fifth_is_new(now: int, *, grown: bool) -> None:
    assert layout_of(100).has_grown(now) == grown


def test_replaced_memories_are_new_ones() -> None:
    half = layout_of(100).without(ids_of(50))
    assert not half.has_grown(50)
    assert half.has_grown(100)
    assert layout_of(3).without(ids_of(3)).has_grown(1)


def test_sample_of_a_large_space_stands_for_all_of_it() -> None:
    sampled = layout_of(100, total=1000)
    assert not sampled.has_grown(1200)
    assert sampled.has_grown(1250)
    assert sampled.without(ids_of(10)).has_grown(1130)


def test_placed_points_beyond_the_bound_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_layout, "MAX_KEPT_POINTS", 6)
    whole = layout_of(5).extended(ids_of(4, start=10), places_of(4))
    assert whole.trimmed().ids == ("m0", "m1", "m2", "m3", "m4", "m10")


def test_layout_from_an_old_one_starts_there() -> None:
    rows = rows_of(40)
    old = MapLayout.new(ids_of(30), lay_out_from(None, ids_of(30), rows[:30]), 30, NOW)
    again = lay_out_from(old, ids_of(40), rows)
    assert np.linalg.norm(again[:30] - old.places, axis=1).mean() < 0.5
    unrelated = MapLayout.new(["x", "y", "z"], places_of(3), 3, NOW)
    assert lay_out_from(unrelated, ids_of(40), rows).tobytes() == lay_out_from(None, ids_of(40), rows).tobytes()


def sampled(conversations: list[int], limit: int) -> IntArray:
    return sample_memories(columns_of(conversations), np.arange(len(conversations)), limit)


def test_sample_has_every_conversation_as_long_as_there_is_room() -> None:
    conversations = [0] * 200 + [1, 2, 3] + [MISSING] * 20
    chosen = sampled(conversations, 10)
    assert len(chosen) == 10
    assert {0, 1, 2, 3} <= {conversations[place] for place in chosen}
    assert len(sampled(list(range(50)), 10)) == 10
    assert sampled(conversations, 500).tolist() == list(range(223))


def test_sample_is_spread_over_time() -> None:
    chosen = sampled([0] * 1000, 100)
    assert 25 < (chosen < 500).sum() < 75


def test_later_memory_changes_a_sample_little() -> None:
    before, after = set(sampled([0] * 1000, 100).tolist()), set(sampled([0] * 1001, 100).tolist())
    assert len(before - after) <= 1
