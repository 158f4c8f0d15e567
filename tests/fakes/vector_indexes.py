"""Every vector index, for the contract tests, with spaces and points.

The server's adapter runs on its client's local mode, and on a real server where MODESTREAM_TEST_QDRANT_URL is set.
"""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient

from agents.ports.vector_index import VectorIndex
from schemas.failures import Unavailable
from schemas.models.vectors import MemoryFilter, Point, Scored, Vector
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.embedded.boundary_cache import BoundaryCache
from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from streams.adapters.vectors.embedded.edge_resources import EdgeResources
from streams.adapters.vectors.server.qdrant_index import QdrantIndex
from tests.fakes.vector_index import FakeIndex

SERVER = os.environ.get("MODESTREAM_TEST_QDRANT_URL")
ON_SERVER = pytest.param("server", marks=pytest.mark.skipif(SERVER is None, reason="no MODESTREAM_TEST_QDRANT_URL"))


KINDS = ["fake", "edge", "engine", "local", ON_SERVER]
"""What a fixture is parametrised by; `engine` is Edge without vectors held beside it. Local mode warns that it ignores
payload indexes, and that it is slow."""

QUIET = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect"),
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
]
"""Marks for the module of such tests."""


@asynccontextmanager
async def opened(kind: str, tmp_path: Path) -> AsyncIterator[VectorIndex]:
    """Yield an empty index of a kind and remove it afterwards."""
    if kind == "server":
        server = on_server()
        await require_server(server)
        yield server
        await remove_collections(server)
        await server.close()
        return
    embedded: dict[str, Callable[[], VectorIndex]] = {
        "fake": FakeIndex,
        "edge": lambda: EdgeIndex(tmp_path),
        "engine": lambda: EdgeIndex(tmp_path, EdgeResources(BoundaryCache(max_points=0))),
        "local": local,
    }
    made = embedded[kind]()
    yield made
    await made.close()


def local() -> QdrantIndex:
    return QdrantIndex(AsyncQdrantClient(":memory:"), prefix="test-")


def on_server() -> QdrantIndex:
    return QdrantIndex.connect(SERVER or "", prefix=f"test-{uuid4().hex[:8]}-", timeout_s=10)


async def require_server(made: QdrantIndex) -> None:
    try:
        await made.spaces()
    except Unavailable:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Qdrant server answers at {SERVER}")


async def remove_collections(made: QdrantIndex) -> None:
    for name in await made.spaces():
        await made._client.delete_collection(made._collections._prefix + name)


def space_of(dim: int = 4, mode: str = "general", embedder: str = "tiny", token_dim: int = 0) -> VectorSpace:
    fingerprint = Fingerprint(
        embedder=embedder, file_sha256="0" * 64, precision="fp32", dim=dim, pooling="mean", normalize=True,
        passage_prefix="", max_tokens=256, tokens=f"linear-{token_dim}" if token_dim else None, token_dim=token_dim,
    )  # fmt: skip
    return VectorSpace(mode, fingerprint)


SPACE = space_of()
EVERYTHING = MemoryFilter("u1")


def memory(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def vector(*numbers: float) -> Vector:
    return np.array(numbers, dtype=np.float32)


X = vector(1, 0, 0, 0)


def point(number: int, **changes: Any) -> Point:
    plain = Point(
        memory_id=memory(number), vector=X, boundary="u1", partition=0, scope={"user_id": "u1", "project_id": "p1"},
        mode="general", type="episodic", occurred_ms=1_800_000_000_000, content_hash=f"hash-{number}",
    )  # fmt: skip
    return replace(plain, **changes)


def ids(found: Sequence[Scored]) -> list[str]:
    return [one.memory_id for one in found]
