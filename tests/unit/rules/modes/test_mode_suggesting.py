"""Which registers are suggested as modes, and what they are called; average linkage behind it."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.rules.clustering.average_linkage import cluster_by_average_linkage
from agents.rules.modes.mode_suggesting import suggest_groups, suggest_mode_name, top_keywords
from schemas.vectors import Matrix

DIM = 512


def around(seed: int, count: int, spread: float = 0.6) -> Matrix:
    """Rows of length 1 around one direction."""
    random = np.random.default_rng(seed)
    return unit(random.normal(size=DIM) + spread * random.normal(size=(count, DIM)))


def unit(rows: "np.ndarray[tuple[int, int], np.dtype[np.float64]]") -> Matrix:
    made: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return made


def scattered(seed: int, count: int) -> Matrix:
    """Rows of no direction in common."""
    return unit(np.random.default_rng(seed).normal(size=(count, DIM)))


def found(unit: Matrix, modes: dict[str, Matrix] | None = None, size: int = 8) -> list[set[int]]:
    """The members of the groups of stretches of this many turns."""
    return [set(group.members) for group in suggest_groups(unit, [size] * len(unit), modes or {})]


def places(start: int, count: int) -> set[int]:
    return set(range(start, start + count))


def test_each_register_is_a_group_and_what_is_of_none_is_in_no_group() -> None:
    rows = np.concatenate([around(1, 10), around(2, 6), scattered(3, 8)])
    assert found(rows) == [places(0, 10), places(10, 6)]


def test_a_register_that_a_mode_is_declared_for_is_not_suggested() -> None:
    rows = np.concatenate([around(1, 16)[:10], around(2, 6), scattered(3, 8)])
    assert found(rows, {"mine": around(1, 16)[10:]}) == [places(10, 6)]
    assert found(rows, {"empty": np.zeros((0, DIM), np.float32)}) == [places(0, 10), places(10, 6)]


def test_a_group_says_how_like_each_mode_it_is() -> None:
    rows = np.concatenate([around(1, 10), scattered(3, 12)])
    [group] = suggest_groups(rows, [8] * len(rows), {"other": around(9, 4)})
    assert set(group.mode_cosines) == {"other"}
    assert abs(group.mode_cosines["other"]) < 0.5


def test_the_bulk_of_what_is_said_is_what_the_default_mode_is_for() -> None:
    rows = np.concatenate([around(1, 20), around(2, 6), scattered(3, 4)])
    assert found(rows) == [places(20, 6)]


def test_a_few_turns_are_no_register() -> None:
    rows = np.concatenate([around(1, 3), scattered(3, 20)])
    assert found(rows, size=5) == []
    assert found(rows, size=6) == [places(0, 3)]


def test_what_is_little_among_many_turns_is_no_register() -> None:
    rows = np.concatenate([around(1, 3), scattered(3, 200)])
    assert found(rows) == []


def test_nothing_is_suggested_of_nothing() -> None:
    assert suggest_groups(np.zeros((0, 1), np.float32), [], {}) == []


def test_the_most_typical_stretch_comes_first() -> None:
    rows = np.concatenate([around(1, 9), scattered(3, 12)])
    [group] = suggest_groups(rows, [8] * len(rows), {})
    middle = rows[:9].mean(axis=0)
    nearness = [float(rows[member] @ middle) for member in group.members]
    assert nearness == sorted(nearness, reverse=True)


@given(st.integers(1, 12), st.floats(0.0, 0.99), st.integers(0, 99))
def test_groups_are_a_partition_and_two_of_them_are_less_alike_than_asked_for(
    count: int, near: float, seed: int
) -> None:
    rows = np.concatenate([around(seed, count), scattered(seed, count)])
    groups = cluster_by_average_linkage(rows, near)
    assert sorted(place for group in groups for place in group) == list(range(2 * count))
    means = [rows[group].mean(axis=0) for group in groups]
    pairs = [(one, other) for place, one in enumerate(means) for other in means[:place]]
    assert all(float(one @ other) < near + 1e-5 for one, other in pairs)


def test_a_chain_is_no_group() -> None:
    angles = np.radians([0, 40, 80, 120])
    rows = np.array([np.cos(angles), np.sin(angles)], np.float32).T
    assert cluster_by_average_linkage(rows, float(np.cos(np.radians(50)))) == [[0, 1], [2, 3]]


def test_words_that_tell_a_group_are_those_that_others_do_not_say() -> None:
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
def test_a_suggested_name_is_free_and_may_be_declared(terms: Sequence[str], taken: list[str], name: str) -> None:
    assert suggest_mode_name(terms, taken) == name
    assert re.fullmatch(r"[a-z0-9_-]{1,64}", name)
