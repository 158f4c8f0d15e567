import json
from pathlib import Path

import numpy as np
import pytest

from schemas.models.vectors import Matrix
from streams.adapters.embedding.catalog.presets import GENERAL_PRESET
from streams.adapters.embedding.inference import local_model
from streams.adapters.embedding.inference.local_model import LEARNED_MAGIC, read_learned
from streams.adapters.embedding.inference.token_vectors import PLAIN_DIM, TokenProjection

LEARNED = Path(local_model.__file__).with_name(GENERAL_PRESET.learned)

SHORT = LEARNED_MAGIC + b'{"kind":"x","arrays":[{"name":"passage","shape":[2,2]}]}\n' + bytes(12)


def loaded(path: Path = LEARNED) -> TokenProjection:
    return TokenProjection.of(read_learned(path))


def states(tokens: int, dim: int) -> Matrix:
    return np.random.default_rng(7).normal(size=(tokens, dim)).astype(np.float32)


def cosines(rows: Matrix) -> Matrix:
    units: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return units @ units.T


@pytest.mark.parametrize("projection", [loaded(), TokenProjection.plain(384), TokenProjection.plain(96)])
def test_rows_have_length_one_and_the_projections_dimension(projection: TokenProjection) -> None:
    dim = 96 if projection.dim == 96 else 384
    for rows in (projection.of_passage(3 * states(5, dim)), projection.of_query(3 * states(5, dim))):
        assert rows.shape == (5, projection.dim)
        assert rows.dtype == np.float32
        assert np.linalg.norm(rows, axis=1) == pytest.approx(1)


@pytest.mark.parametrize("projection", [loaded(), TokenProjection.plain(384)])
def test_no_states_give_no_rows(projection: TokenProjection) -> None:
    assert projection.of_passage(states(0, 384)).shape == (0, projection.dim)


@pytest.mark.parametrize("projection", [loaded(), TokenProjection.plain(384)])
def test_zero_state_stays_finite(projection: TokenProjection) -> None:
    assert np.isfinite(projection.of_passage(0 * states(2, 384))).all()


@pytest.mark.parametrize("dim", [384, 768, 1024])
def test_plain_projection_preserves_similarities(dim: int) -> None:
    first, second = states(400, dim), states(400, dim)
    second[200:] = first[200:] + 0.5 * np.roll(first[200:], 1, axis=0)
    projection = TokenProjection.plain(dim)
    kept = np.einsum("ij,ij->i", projection.of_passage(first), projection.of_passage(second))
    real = np.einsum("ij,ij->i", first, second) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    assert projection.dim == PLAIN_DIM
    assert np.abs(kept - real).mean() < 0.1


def test_plain_projection_keeps_short_states() -> None:
    projection, some = TokenProjection.plain(32), states(9, 32)
    assert projection.dim == 32
    assert cosines(projection.of_query(some)) == pytest.approx(cosines(some), abs=1e-5)


def test_projections_have_distinct_names(tmp_path: Path) -> None:
    other = tmp_path / "other.bin"
    content = bytearray(LEARNED.read_bytes())
    content[-4:] = np.array([0.5], "<f4").tobytes()
    other.write_bytes(content)
    names = [loaded().name, loaded(other).name]
    names += [TokenProjection.plain(dim).name for dim in (32, 96, 384)]
    assert len(set(names)) == len(names)
    assert loaded().name == names[0]


def test_learned_file_may_map_queries_differently(tmp_path: Path) -> None:
    path, some = tmp_path / "two.bin", states(3, 2)
    arrays = [{"name": name, "shape": [2, 2]} for name in ("passage", "question")]
    numbers = np.array([1, 0, 0, 1, 0, 1, 1, 0], "<f4")
    path.write_bytes(
        LEARNED_MAGIC + json.dumps({"kind": "made", "arrays": arrays}).encode() + b"\n" + numbers.tobytes()
    )
    projection = loaded(path)
    assert projection.name.startswith("made-2-")
    assert projection.of_query(some) == pytest.approx(projection.of_passage(some)[:, ::-1])


@pytest.mark.parametrize(
    "content", [b"", b"something else", LEARNED_MAGIC + b'{"kind":"x","arrays":[]}\n', LEARNED_MAGIC + b"x\n", SHORT]
)
def test_file_of_another_format_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.bin"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"projection|map of passages|JSON|reshape"):
        loaded(path)


def test_maps_of_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="shapes"):
        TokenProjection("odd", states(4, 3), states(4, 2))
