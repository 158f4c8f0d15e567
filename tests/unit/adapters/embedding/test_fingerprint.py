from typing import Any

import pytest

from schemas.state.modes import Fingerprint

PLAIN = Fingerprint(
    embedder="e",
    file_sha256="f",
    precision="int8",
    dim=3,
    pooling="mean",
    normalize=True,
    passage_prefix="",
    max_tokens=256,
)


@pytest.mark.parametrize("change", [{"tokens": "linear-128-a", "token_dim": 128}, {"embedder": "o"}, {"dim": 4}])
def test_another_fingerprint_is_another_space(change: dict[str, Any]) -> None:
    assert PLAIN.model_copy(update=change).digest != PLAIN.digest


def test_another_projection_of_the_tokens_is_another_space() -> None:
    first, second = (PLAIN.model_copy(update={"tokens": name, "token_dim": 128}) for name in ("linear-a", "linear-b"))
    assert first.digest != second.digest


def test_space_without_token_vectors_keeps_its_original_digest() -> None:
    assert PLAIN.digest == "44d235081cad"
    assert Fingerprint.model_validate_json(PLAIN.model_dump_json()).digest == PLAIN.digest
