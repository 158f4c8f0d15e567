"""Layouts: near in meaning lies near, the same bytes twice, and old places that stay."""

import numpy as np
import pytest

from agents.rules.clustering.clustering import normalise_rows
from agents.rules.maps.layout import (
    BLOCK_ROWS,
    Places,
    PrincipalPlane,
    Stopped,
    align,
    lay_out,
    lay_out_again,
    nearest_rows,
    neighbour_graph,
    place_among,
    scale_to_square,
)
from schemas.models.vectors import Matrix

TOPICS, DIM = 12, 48


def topics(rows: int, seed: int = 1, noise: float = 0.25) -> Matrix:
    """Rows of length 1 around some centres, row n around centre n % TOPICS."""
    draws = np.random.default_rng(seed)
    centres = normalise_rows(np.random.default_rng(0).standard_normal((TOPICS, DIM)).astype(np.float32))
    spread = noise * draws.standard_normal((rows, DIM)) / np.sqrt(DIM) * 3
    return normalise_rows((centres[np.arange(rows) % TOPICS] + spread).astype(np.float32))


def trustworthiness(rows: Matrix, places: Places, neighbours: int = 15) -> float:
    """How many map neighbours are neighbours by vectors, 1 for all (Venna and Kaski, 2001)."""
    size = len(rows)
    by_vectors = np.argsort(np.argsort(-(rows @ rows.T), axis=1), axis=1)
    apart = np.square(places[:, None] - places[None]).sum(axis=2)
    on_map = np.argsort(apart, axis=1)[:, 1 : neighbours + 1]
    beyond = np.maximum(0, np.take_along_axis(by_vectors, on_map, axis=1) - neighbours).sum()
    return 1 - 2 / (size * neighbours * (2 * size - 3 * neighbours - 1)) * float(beyond)


def test_layout_keeps_neighbours_better_than_principal_components() -> None:
    rows = topics(300)
    laid_out, projected = lay_out(rows), PrincipalPlane.of(rows).project(rows)
    assert trustworthiness(rows, laid_out) > 0.9
    assert trustworthiness(rows, laid_out) > trustworthiness(rows, projected) + 0.05


def test_same_rows_give_the_same_bytes() -> None:
    rows = topics(100)
    assert lay_out(rows).tobytes() == lay_out(rows.copy()).tobytes()


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 7, 16, 40])
@pytest.mark.parametrize("alike", [False, True])
def test_places_are_finite_and_in_the_square(size: int, *, alike: bool) -> None:
    rows = np.repeat(topics(1), size, axis=0) if alike else topics(size)
    places = lay_out(rows)
    assert places.shape == (size, 2)
    assert np.isfinite(places).all()
    assert not size or np.abs(places).max() <= 1


def test_zero_rows_have_a_place() -> None:
    rows = np.concatenate((topics(5), np.zeros((3, DIM), np.float32)))
    assert np.isfinite(lay_out(rows)).all()


def test_refit_from_an_old_layout_moves_points_little() -> None:
    old_rows, new_rows = topics(150), topics(50, seed=2)
    old = lay_out(old_rows)
    rows = np.concatenate((old_rows, new_rows))
    start = np.concatenate((old, place_among(new_rows, old_rows, old)))
    again, fresh = lay_out_again(rows, start, np.arange(150)), lay_out(rows)
    radius = float(np.linalg.norm(old - old.mean(axis=0), axis=1).mean())
    moved = np.linalg.norm(again[:150] - old, axis=1).mean() / radius
    assert moved < 0.3
    assert moved < np.linalg.norm(align(fresh, np.arange(150), old)[:150] - old, axis=1).mean() / radius
    assert np.abs(again).max() <= 1
    assert trustworthiness(rows, again) > 0.9


def test_new_rows_are_placed_among_their_topic() -> None:
    old_rows, new_rows = topics(240), topics(60, seed=3)
    old = lay_out(old_rows)
    placed = place_among(new_rows, old_rows, old)
    own = np.stack([old[np.arange(240) % TOPICS == topic].mean(axis=0) for topic in range(TOPICS)])
    nearest = np.square(placed[:, None] - own[None]).sum(axis=2).argmin(axis=1)
    assert (nearest == np.arange(60) % TOPICS).mean() > 0.9


def test_row_without_laid_out_neighbours_lies_in_the_middle() -> None:
    nothing = np.zeros((0, 2), np.float32)
    assert place_among(topics(2), topics(0), nothing).tolist() == [[0, 0], [0, 0]]
    assert place_among(topics(0), topics(5), np.zeros((5, 2), np.float32)).shape == (0, 2)


def test_alignment_undoes_turn_mirror_shift_and_scale() -> None:
    old = scale_to_square(np.random.default_rng(1).standard_normal((50, 2)).astype(np.float32)) / np.float32(2)
    turned = (old @ np.array([[0, 3], [3, 0]]) + 7).astype(np.float32)
    assert np.allclose(align(turned, np.arange(50), old), old, atol=1e-5)
    assert np.allclose(align(turned, np.arange(20), old[:20]), old, atol=1e-5)


def test_nearest_rows_are_exact_beyond_one_block() -> None:
    rows = topics(BLOCK_ROWS * 2 + 5)
    found = nearest_rows(rows, rows, 4)
    exact = np.argsort(-(rows @ rows.T), axis=1, kind="stable")[:, :4]
    assert (found.rows == exact).mean() > 0.99
    assert (np.diff(found.cosines, axis=1) <= 0).all()


def test_graph_has_both_directions_and_no_loops() -> None:
    edges = neighbour_graph(topics(50))
    pairs = set(zip(edges.heads.tolist(), edges.tails.tolist(), strict=True))
    assert pairs == {(tail, head) for head, tail in pairs}
    assert all(head != tail for head, tail in pairs)
    assert 0 < edges.weights.min() <= edges.weights.max() <= 1 + 1e-6
    assert {head for head, _ in pairs} == set(range(50))


def test_layout_stops_when_told() -> None:
    left = [30]

    def is_over() -> bool:
        left[0] -= 1
        return left[0] < 0

    with pytest.raises(Stopped):
        lay_out(topics(60), should_stop=is_over)


def test_plane_projects_later_rows_into_the_square() -> None:
    plane = PrincipalPlane.of(topics(100))
    assert plane.project(topics(100)).tobytes() == PrincipalPlane.of(topics(100)).project(topics(100)).tobytes()
    assert np.abs(plane.project(topics(20, noise=2.0) * 50)).max() <= 1
    one_number = PrincipalPlane.of(np.ones((3, 1), np.float32))
    assert one_number.project(np.ones((2, 1), np.float32)).tolist() == [[0, 0], [0, 0]]
