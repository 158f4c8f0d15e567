"""Every vector index, for the contract tests, with spaces and points.

The server's adapter runs on its client's local mode, by gRPC on `tests/fakes/qdrant_server`, and on a real server where
MODESTREAM_TEST_QDRANT_URL is set.
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

from agents.ports.indexes import VectorIndex
from schemas.failures import Unavailable
from schemas.models.vectors import MemoryFilter, Point, Scored, Vector
from streams.adapters.vectors.embedded.boundary_cache import BoundaryCache
from streams.adapters.vectors.embedded.edge_index import EdgeIndex, EdgeResources
from streams.adapters.vectors.server.qdrant_index import QdrantIndex
from tests.builders.spaces import space_of
from tests.fakes.qdrant_server.service import serving
from tests.fakes.vector_index import FakeIndex

SERVER = os.environ.get("MODESTREAM_TEST_QDRANT_URL")
GRPC_PORT = int(os.environ.get("MODESTREAM_TEST_QDRANT_GRPC_PORT", "6334")) or None
"""0: the tests on the server use REST."""

ON_SERVER = pytest.param("server", marks=pytest.mark.skipif(SERVER is None, reason="no MODESTREAM_TEST_QDRANT_URL"))


KINDS = ["fake", "edge", "engine", "local", "grpc", ON_SERVER]
"""What a fixture is parametrised by. `engine` is Edge that searches every boundary as one with many memories, `grpc` a
server on the loopback over the embedded engine. Local mode warns that it ignores payload indexes, and that it is
slow."""

QUIET = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect"),
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
]
"""Marks for the module of such tests."""


@asynccontextmanager
async def opened(kind: str, tmp_path: Path) -> AsyncIterator[VectorIndex]:
    if kind == "server":
        server = on_server()
        await require_server(server)
        yield server
        await server.delete_collections()
        await server.close()
        return
    if kind == "grpc":
        async with serving(tmp_path / "server") as port:
            made = over_grpc(port)
            yield made
            await made.close()
        return
    embedded: dict[str, Callable[[], VectorIndex]] = {
        "fake": FakeIndex,
        "edge": lambda: EdgeIndex(tmp_path),
        "engine": lambda: EdgeIndex(tmp_path, EdgeResources(BoundaryCache(max_points=0))),
        "local": local,
    }
    opened_index = embedded[kind]()
    yield opened_index
    await opened_index.close()


def local() -> QdrantIndex:
    return QdrantIndex(AsyncQdrantClient(":memory:"), prefix="test-")


def over_grpc(port: int, **options: Any) -> QdrantIndex:
    """Return an index on a server of this process; nothing listens at the port of REST."""
    return QdrantIndex.connect("http://127.0.0.1:1", prefix="test-", grpc_port=port, **options)


def on_server() -> QdrantIndex:
    return QdrantIndex.connect(SERVER or "", prefix=f"test-{uuid4().hex[:8]}-", timeout_s=10, grpc_port=GRPC_PORT)


async def require_server(made: QdrantIndex) -> None:
    try:
        await made.spaces()
    except Unavailable:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Qdrant server answers at {SERVER}")


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
    return [memory.memory_id for memory in found]
