"""Rows of the packed store: 16-bit floats, and points without a row."""

from dataclasses import replace

import numpy as np
import pytest

from schemas.models.vectors import PassageVectors, Vector
from streams.adapters.vectors.embedded.packed_vectors import half_unit_vector, pack_point, unpack_vectors
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import point

SPACE = space_of(dim=384, token_dim=2)
TOKENS = np.array([[0.5, -0.25], [0.125, 1 - 2**-7]], np.float32)


def drawn(seed: int) -> Vector:
    vector: Vector = np.random.default_rng(seed).standard_normal(SPACE.fingerprint.dim).astype(np.float32)
    return vector


def test_pooled_vector_has_16_bits_a_number_and_tokens_8() -> None:
    made = point(1, vector=drawn(1), tokens=TOKENS)
    row = pack_point(SPACE.fingerprint, made)
    assert row is not None
    assert len(row) < 2 * SPACE.fingerprint.dim + TOKENS.size + 100
    found = unpack_vectors(SPACE.fingerprint, row)
    assert found.pooled == pytest.approx(drawn(1) / np.linalg.norm(drawn(1)), rel=2**-11, abs=1e-7)
    assert (found.tokens / 128).tolist() == TOKENS.tolist()


def test_row_of_a_space_of_cut_texts_has_their_passages() -> None:
    fingerprint = space_of(dim=384, token_dim=2, passages="400-1").fingerprint
    pooled, counts = np.array([drawn(4), drawn(5), drawn(6)]), np.array([2, 0, 0])
    made = point(1, vector=drawn(1), tokens=TOKENS, passages=PassageVectors(pooled, counts))
    row, plain = pack_point(fingerprint, made), pack_point(fingerprint, replace(made, passages=None))
    assert row is not None
    assert plain is not None
    assert len(row) - len(plain) == 3 * (2 * 384 + 2)
    found = unpack_vectors(fingerprint, row)
    assert found.passages is not None
    assert found.passages.token_counts.tolist() == [2, 0, 0]
    units = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    assert found.passages.pooled == pytest.approx(units, rel=2**-11, abs=1e-7)
    assert (found.tokens / 128).tolist() == TOKENS.tolist()
    assert unpack_vectors(fingerprint, plain).passages is None


@pytest.mark.parametrize("dim", [1, 2, 3, 384])
def test_rounded_vector_stays_as_it_is(dim: int) -> None:
    for seed in range(200):
        once = half_unit_vector(drawn(seed)[:dim])
        assert half_unit_vector(once).tolist() == once.tolist()
        assert float(once @ once) == pytest.approx(1, abs=2**-10)
    assert half_unit_vector(np.zeros(dim, np.float32)).tolist() == [0] * dim


def test_point_with_very_long_filter_fields_has_no_row() -> None:
    scope = {f"field{number}": "\U0001f331" * 256 for number in range(24)}
    assert pack_point(SPACE.fingerprint, point(1, vector=drawn(3), tokens=TOKENS, scope=scope)) is None
    long = replace(point(1, vector=drawn(3), tokens=TOKENS), scope={"field": "x" * 256})
    assert pack_point(SPACE.fingerprint, long) is not None
