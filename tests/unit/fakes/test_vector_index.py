"""The outage switch of the fake; the contract tests cover the rest."""

import numpy as np
import pytest

from schemas.failures import Unavailable
from schemas.models.vectors import MemoryFilter, Point
from schemas.state.modes import Fingerprint, VectorSpace
from tests.fakes.vector_index import FakeIndex

FINGERPRINT = Fingerprint(
    embedder="tiny", file_sha256="0" * 64, precision="fp32", dim=2, pooling="mean", normalize=True,
    passage_prefix="", max_tokens=256,
)  # fmt: skip
SPACE = VectorSpace("general", FINGERPRINT)
ID = "00000000-0000-4000-8000-000000000001"
ONES = np.ones(2, dtype=np.float32)
POINT = Point(ID, ONES, "u1", 0, {"user_id": "u1"}, "general", "episodic", 5, "hash")


async def test_every_call_is_unavailable_until_it_is_up_again() -> None:
    index = FakeIndex()
    await index.upsert(SPACE, [POINT])
    index.down()
    for call in (
        index.upsert(SPACE, [POINT]),
        index.delete(SPACE, [ID]),
        index.search(SPACE, ONES, MemoryFilter("u1"), 1),
        index.maxsim(SPACE, ONES.reshape(1, 2), MemoryFilter("u1"), 1),
        index.hashes(SPACE, [ID]),
        index.vectors(SPACE, [ID]),
        index.count(SPACE, 0),
        index.spaces(),
    ):
        with pytest.raises(Unavailable):
            await call
    index.up()
    assert await index.count(SPACE, 0) == 1
