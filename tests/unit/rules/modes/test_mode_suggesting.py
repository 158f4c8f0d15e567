"""Suggested modes: groups, keywords and names; average linkage."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.rules.clustering.clustering import cluster_by_average_linkage
from agents.rules.index.memory_columns import MemoryColumns, MemoryRow, Trait
from agents.rules.modes.mode_suggesting import (
    MAX_SEGMENT_TURNS,
    chosen_segments_by_mode,
    default_segments_by_location,
    split_segments,
    suggest_groups,
    suggest_mode_name,
    top_keywords,
)
from schemas.models.vectors import Matrix
from schemas.state.memories import Memory, VectorLocation
from tests.builders.items import distilled_of
from tests.builders.memories import embedded_in, made

DIM = 512


def cluster_rows(seed: int, count: int, spread: float = 0.6) -> Matrix:
    """Rows of length 1 close to one direction."""
    random = np.random.default_rng(seed)
    return unit(random.normal(size=DIM) + spread * random.normal(size=(count, DIM)))


def unit(rows: "np.ndarray[tuple[int, int], np.dtype[np.float64]]") -> Matrix:
    made: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return made


def noise_rows(seed: int, count: int) -> Matrix:
    """Rows without a common direction."""
    return unit(np.random.default_rng(seed).normal(size=(count, DIM)))


def suggested_members(unit: Matrix, modes: dict[str, Matrix] | None = None, size: int = 8) -> list[set[int]]:
    """The members of the suggested groups, with `size` turns a segment."""
    return [set(group.members) for group in suggest_groups(unit, [size] * len(unit), modes or {})]


def row_range(start: int, count: int) -> set[int]:
    return set(range(start, start + count))


def test_each_register_is_a_group_and_noise_is_in_none() -> None:
    rows = np.concatenate([cluster_rows(1, 10), cluster_rows(2, 6), noise_rows(3, 8)])
    assert suggested_members(rows) == [row_range(0, 10), row_range(10, 6)]


def test_register_with_a_declared_mode_is_not_suggested() -> None:
    rows = np.concatenate([cluster_rows(1, 16)[:10], cluster_rows(2, 6), noise_rows(3, 8)])
    assert suggested_members(rows, {"mine": cluster_rows(1, 16)[10:]}) == [row_range(10, 6)]
    assert suggested_members(rows, {"empty": np.zeros((0, DIM), np.float32)}) == [row_range(0, 10), row_range(10, 6)]


def test_group_has_its_cosine_with_each_mode() -> None:
    rows = np.concatenate([cluster_rows(1, 10), noise_rows(3, 12)])
    [group] = suggest_groups(rows, [8] * len(rows), {"other": cluster_rows(9, 4)})
    assert set(group.mode_cosines) == {"other"}
    assert abs(group.mode_cosines["other"]) < 0.5


def test_majority_register_is_not_suggested() -> None:
    rows = np.concatenate([cluster_rows(1, 20), cluster_rows(2, 6), noise_rows(3, 4)])
    assert suggested_members(rows) == [row_range(20, 6)]


def test_small_group_is_not_suggested() -> None:
    rows = np.concatenate([cluster_rows(1, 3), noise_rows(3, 20)])
    assert suggested_members(rows, size=5) == []
    assert suggested_members(rows, size=6) == [row_range(0, 3)]


def test_small_share_is_not_suggested() -> None:
    rows = np.concatenate([cluster_rows(1, 3), noise_rows(3, 200)])
    assert suggested_members(rows) == []


def test_no_segments_give_no_suggestion() -> None:
    assert suggest_groups(np.zeros((0, 1), np.float32), [], {}) == []


def test_members_are_ordered_by_cosine_with_the_centroid() -> None:
    rows = np.concatenate([cluster_rows(1, 9), noise_rows(3, 12)])
    [group] = suggest_groups(rows, [8] * len(rows), {})
    middle = rows[:9].mean(axis=0)
    nearness = [float(rows[member] @ middle) for member in group.members]
    assert nearness == sorted(nearness, reverse=True)


@given(st.integers(1, 12), st.floats(0.0, 0.99), st.integers(0, 99))
def test_linkage_partitions_rows_into_dissimilar_groups(count: int, near: float, seed: int) -> None:
    rows = np.concatenate([cluster_rows(seed, count), noise_rows(seed, count)])
    groups = cluster_by_average_linkage(rows, near)
    assert sorted(place for group in groups for place in group) == list(range(2 * count))
    means = [rows[group].mean(axis=0) for group in groups]
    pairs = [(mean, other) for place, mean in enumerate(means) for other in means[:place]]
    assert all(float(mean @ other) < near + 1e-5 for mean, other in pairs)


def test_linkage_splits_a_chain() -> None:
    angles = np.radians([0, 40, 80, 120])
    rows = np.array([np.cos(angles), np.sin(angles)], np.float32).T
    assert cluster_by_average_linkage(rows, float(np.cos(np.radians(50)))) == [[0, 1], [2, 3]]


def test_keywords_distinguish_a_group() -> None:
    here = [f"The compiler rejects the branch {number} this morning" for number in range(5)]
    rest = [f"The soup needs salt {number} this morning, said Ana" for number in range(5)]
    assert set(top_keywords(here, [*here, *rest])) >= {"compiler", "branch"}
    assert "morning" not in top_keywords(here, [*here, *rest])
    assert top_keywords([f"Ana compiles {n}" for n in range(3)], [*here, *rest, "Ana compiles 1"], ["ana"]) == [
        "compiles"
    ]


@pytest.mark.parametrize(
    ("terms", "taken", "name"),
    [
        (["compiler", "branch", "build"], [], "compiler-branch"),
        (["chapter", "chapters", "novel"], [], "chapter-novel"),
        (["compiler", "branch"], ["compiler-branch", "compiler-branch-2"], "compiler-branch-3"),
        (["日本", "compiler"], [], "compiler"),
        (["日本"], [], "mode"),
        ([], ["mode"], "mode-2"),
        (["x" * 64, "y" * 64], [], "x" * 60),
    ],
)
def test_suggested_name_is_free_and_valid(terms: Sequence[str], taken: list[str], name: str) -> None:
    assert suggest_mode_name(terms, taken) == name
    assert re.fullmatch(r"[a-z0-9_-]{1,64}", name)


def segment_texts(*memories: Memory, limit: int = 100) -> list[list[str]]:
    traits: dict[Trait, int] = {}
    rows = []
    for number, each in enumerate(memories):
        key = traits.setdefault(Trait.of(each), len(traits))
        superseded = each.superseded_by is not None
        rows.append(MemoryRow(number, each.memory_id, key, each.occurred_ms, each.source, 3, 0.5, superseded, None))
    columns = MemoryColumns(rows, {key: trait for trait, key in traits.items()})
    texts = {memory.memory_id: memory.text for memory in memories}
    return [[texts[memory_id] for memory_id in segment] for segment in split_segments(columns, limit)]


def turn(number: int, conversation: str = "c1", **fields: Any) -> Memory:
    return made(f"{conversation} {number}", number, conversation_id=conversation, **fields)


def test_segments_separate_interleaved_conversations() -> None:
    turns = [turn(2), turn(1, "c2"), turn(0), turn(3, "c2")]
    assert sorted(segment_texts(*turns)) == [["c1 0", "c1 2"], ["c2 1", "c2 3"]]


def test_long_conversations_and_pauses_start_new_segments() -> None:
    long = [turn(number) for number in range(MAX_SEGMENT_TURNS + 1)]
    assert [len(segment) for segment in segment_texts(*long)] == [MAX_SEGMENT_TURNS, 1]
    assert segment_texts(turn(0), turn(1), turn(600)) == [["c1 0", "c1 1"], ["c1 600"]]


def test_superseded_and_distilled_memories_are_excluded() -> None:
    said, gone = turn(0), turn(1, superseded_by="another")
    assert segment_texts(said, gone, distilled_of(said, text="In short.")) == [["c1 0"]]


def test_segments_beyond_the_limit_are_thinned_evenly() -> None:
    turns = [turn(number, f"c{number}") for number in range(9)]
    assert segment_texts(*turns, limit=3) == [["c0 0"], ["c4 4"], ["c8 8"]]
    assert len(segment_texts(*turns, limit=9)) == 9
    assert segment_texts() == []


def test_default_and_chosen_modes_are_separated() -> None:
    ready = embedded_in("s1")
    chosen = turn(0, mode="code", mode_source="caller", embedding=ready)
    by_model = turn(1, mode="code", mode_source="model")
    defaulted = [turn(2, embedding=ready), turn(3, mode_source="user_default", embedding=ready)]
    waiting = turn(4)
    segment = [chosen, by_model, *defaulted, waiting]
    assert chosen_segments_by_mode([segment]) == {"code": [[chosen, by_model]]}
    assert default_segments_by_location([segment]) == {VectorLocation(mode="general", space="s1"): [defaulted]}
