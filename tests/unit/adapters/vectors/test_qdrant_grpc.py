"""The index on a Qdrant server by gRPC: calls, and a server that is down, slow or busy."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc.aio
import numpy as np
import pytest
from qdrant_client import grpc as messages

from agents.ports.indexes import PlannedSearch
from schemas.failures import Unavailable
from schemas.models.vectors import Encoded, Matrix, PassageVectors
from streams.adapters.vectors.server.qdrant_collections import MAX_HANGS
from streams.adapters.vectors.server.qdrant_index import BATCHES_AT_ONCE, QdrantIndex
from streams.adapters.vectors.server.stored_points import IN_MEMORY, ServerStorage
from streams.adapters.vectors.server.transports import dense_message, rows_message
from streams.up.layout import free_port
from tests.builders.spaces import space_of
from tests.fakes.qdrant_server.recorded_calls import RecordedCalls
from tests.fakes.qdrant_server.service import serving
from tests.fakes.vector_indexes import EVERYTHING, X, ids, memory, over_grpc, point

SPACE = space_of(token_dim=2)
ROWS = np.ones((3, 2), np.float32)
POINT = replace(point(1), tokens=ROWS)
ASKED = Encoded(X, ROWS)

Server = tuple[QdrantIndex, RecordedCalls]


@asynccontextmanager
async def served(directory: Path, timeout_s: float = 5.0, storage: ServerStorage = IN_MEMORY) -> AsyncIterator[Server]:
    calls = RecordedCalls()
    async with serving(directory, interceptors=(calls,)) as port:
        index = over_grpc(port, timeout_s=timeout_s, storage=storage)
        yield index, calls
        calls.hangs = False
        await index.close()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with served(tmp_path) as running:
        yield running


def every_call(index: QdrantIndex) -> list[Awaitable[object]]:
    return [
        index.upsert(SPACE, [POINT]),
        index.delete(SPACE, [memory(1)]),
        index.search(SPACE, X, EVERYTHING, 5),
        index.maxsim(SPACE, ROWS, EVERYTHING, 5),
        index.hashes(SPACE, [memory(1)]),
        index.vectors(SPACE, [memory(1)]),
        index.count(SPACE, 0),
        index.spaces(),
        read_ahead_and_search(index),
    ]


async def read_ahead_and_search(index: QdrantIndex) -> None:
    reads = await index.read_ahead([PlannedSearch(SPACE, [ASKED], EVERYTHING, 5, 5)])
    await reads.search(SPACE, X, EVERYTHING, 5)


async def assert_unavailable(index: QdrantIndex) -> None:
    for call in every_call(index):
        with pytest.raises(Unavailable) as caught:
            await call
        assert caught.value.__cause__


async def test_question_is_one_request_for_each_collection(server: Server) -> None:
    index, calls = server
    spaces = [SPACE, space_of(mode="code", token_dim=2)]
    for space in spaces:
        await index.upsert(space, [POINT])
    calls.names.clear()
    calls.delay_s = 0.05
    reads = await index.read_ahead([PlannedSearch(space, [ASKED], EVERYTHING, 5, 5, [memory(1)]) for space in spaces])
    for space in spaces:
        assert ids(await reads.search(space, X, EVERYTHING, 5)) == [memory(1)]
        assert ids(await reads.maxsim(space, ROWS, EVERYTHING, 5, [memory(1)])) == [memory(1)]
    assert calls.names == ["Points/QueryBatch"] * 2
    assert calls.most_at_once == 2


async def test_passages_are_asked_for_in_the_same_request(server: Server) -> None:
    index, calls = server
    space = space_of(token_dim=2, passages="400-1")
    passages = PassageVectors(np.array([X, -X]), np.array([2, 1]))
    await index.upsert(space, [replace(POINT, passages=passages), replace(POINT, memory_id=memory(2))])
    calls.names.clear()
    reads = await index.read_ahead([PlannedSearch(space, [ASKED], EVERYTHING, 10, 10, passage_limit=10)])
    assert ids(await reads.search(space, X, EVERYTHING, 10)) == [memory(2), memory(1)]
    found = await reads.search_passages(space, X, EVERYTHING, 10)
    assert ids(found) == [memory(1)]
    assert found.passages is not None
    assert found.passages.parts.tolist() == [0, 1]
    assert ids(await reads.maxsim(space, ROWS, EVERYTHING, 10)) == [memory(1), memory(2)]
    assert calls.names == ["Points/QueryBatch"]


async def test_passages_count_towards_the_size_of_a_write(server: Server) -> None:
    index, calls = server
    space = space_of(passages="400-1")
    passages = PassageVectors(np.repeat(X[np.newaxis], 60, axis=0), np.zeros(60, np.int64))
    await index.upsert(space, [point(number, passages=passages) for number in range(40)])
    written = [request for request, name in zip(calls.requests, calls.names, strict=True) if name == "Points/Upsert"]
    assert sorted(len(request.points) for request in written) == [5 * 61, 35 * 61]


async def test_filter_is_in_candidates_and_outer_query(server: Server) -> None:
    index, calls = server
    await index.upsert(SPACE, [POINT])
    await index.read_ahead([PlannedSearch(SPACE, [ASKED], EVERYTHING, 5, 5, [memory(1)])])
    _, late = calls.last("Points/QueryBatch").query_points
    keys = [
        [condition.field.key for condition in part.filter.must if condition.field.key]
        for part in (late, *late.prefetch)
    ]
    assert keys == [["boundary"]] * 3
    assert [part.params.exact for part in (late, *late.prefetch)] == [True] * 3
    assert [candidates.using for candidates in late.prefetch] == ["pooled", ""]


async def test_second_write_sends_only_the_write(server: Server) -> None:
    index, calls = server
    await index.upsert(SPACE, [POINT])
    calls.names.clear()
    await index.upsert(SPACE, [POINT])
    assert calls.names == ["Points/Upsert"]
    assert calls.last("Points/Upsert").wait


async def test_spaces_are_listed_in_one_request(server: Server) -> None:
    index, calls = server
    for mode in ("general", "code", "journal"):
        await index.upsert(space_of(mode=mode), [point(1)])
    assert len(await index.spaces()) == 3
    calls.names.clear()
    assert len(await index.spaces()) == 3
    assert calls.names == ["Collections/List"]


async def test_batches_are_written_and_read_side_by_side_within_a_bound(server: Server) -> None:
    index, calls = server
    await index.upsert(SPACE, [POINT])
    calls.delay_s = 0.02
    await index.upsert(SPACE, [replace(point(number), tokens=np.ones((200, 2), np.float32)) for number in range(100)])
    assert calls.most_at_once == BATCHES_AT_ONCE
    calls.most_at_once = 0
    assert len(await index.vectors(SPACE, [memory(number) for number in range(200)])) == 100
    assert calls.most_at_once == BATCHES_AT_ONCE


async def test_failed_batch_fails_the_write(server: Server) -> None:
    index, calls = server
    await index.upsert(SPACE, [POINT])
    calls.status = grpc.StatusCode.UNAVAILABLE
    many = [replace(point(number), tokens=np.ones((400, 2), np.float32)) for number in range(60)]
    with pytest.raises(Unavailable):
        await index.upsert(SPACE, many)
    calls.status = None
    await index.upsert(SPACE, many)
    assert await index.count(SPACE, 0) == 60


async def test_closed_port_is_unavailable_and_says_which() -> None:
    index = over_grpc(free_port())
    await assert_unavailable(index)
    with pytest.raises(Unavailable, match="MODESTREAM_QDRANT_GRPC_PORT"):
        await index.spaces()
    await index.close()


@pytest.mark.parametrize("seen_before", [False, True])
async def test_transient_failure_is_unavailable(server: Server, *, seen_before: bool) -> None:
    index, calls = server
    if seen_before:
        await index.upsert(SPACE, [POINT])
    code = grpc.StatusCode
    for status in (
        code.UNAVAILABLE, code.INTERNAL, code.UNKNOWN, code.UNAUTHENTICATED, code.PERMISSION_DENIED, code.ABORTED,
        code.RESOURCE_EXHAUSTED, code.DEADLINE_EXCEEDED, code.FAILED_PRECONDITION, code.UNIMPLEMENTED,
    ):  # fmt: skip
        calls.status = status
        await assert_unavailable(index)
    calls.status = None
    await index.upsert(SPACE, [POINT])


async def test_permanently_refused_request_raises_the_clients_error(server: Server) -> None:
    index, calls = server
    calls.status = grpc.StatusCode.INVALID_ARGUMENT
    for call in every_call(index):
        with pytest.raises(grpc.aio.AioRpcError):
            await call


async def test_server_that_hangs_is_asked_no_more_until_it_answers(tmp_path: Path) -> None:
    async with served(tmp_path, timeout_s=0.4) as (index, calls):
        await index.upsert(SPACE, [POINT])
        calls.hangs = True
        for _ in range(MAX_HANGS):
            with pytest.raises(Unavailable):
                await index.search(SPACE, X, EVERYTHING, 5)
        asked = len(calls.names)
        async with asyncio.timeout(0.4):
            for call in every_call(index):
                with pytest.raises(Unavailable, match="does not answer"):
                    await call
        assert index.problem()
        assert set(calls.names[asked:]) <= {"Collections/List"}
        calls.hangs = False
        async with asyncio.timeout(10):
            while index.problem():
                await asyncio.sleep(0.05)
        await index.upsert(SPACE, [POINT])


async def test_deleted_collection_is_created_again(server: Server) -> None:
    index, _ = server
    await index.upsert(SPACE, [POINT])
    await index._client.delete_collection(f"test-{SPACE.collection}")
    with pytest.raises(Unavailable):
        await index.search(SPACE, X, EVERYTHING, 5)
    assert await index.search(SPACE, X, EVERYTHING, 5) == []
    await index.upsert(SPACE, [POINT])
    assert ids(await index.search(SPACE, X, EVERYTHING, 5)) == [memory(1)]


async def test_another_process_finds_collection_fingerprint_and_alias(server: Server, tmp_path: Path) -> None:
    index, calls = server
    await index.upsert(SPACE, [POINT])
    created = calls.last("Collections/Create")
    assert created.hnsw_config.m == 0
    assert created.hnsw_config.payload_m == 0
    calls.names.clear()
    other = over_grpc(index._client._client._grpc_port)  # type: ignore[attr-defined]
    assert await other.spaces() == {SPACE.collection: SPACE.fingerprint}
    await other.upsert(SPACE, [point(2)])
    await other.close()
    assert not {"Collections/Create", "Collections/UpdateAliases"} & set(calls.names)


async def test_collection_that_another_worker_creates_meanwhile_is_used(server: Server) -> None:
    index, calls = server
    other = over_grpc(index._client._client._grpc_port)  # type: ignore[attr-defined]
    calls.delay_s = 0.05
    await asyncio.gather(index.upsert(SPACE, [POINT]), other.upsert(SPACE, [point(2)]))
    await other.close()
    assert calls.names.count("Collections/Create") == 2
    assert await index.count(SPACE, 0) == 2


async def test_settings_put_originals_on_disk_and_search_quantised_copies(tmp_path: Path) -> None:
    storage = ServerStorage(on_disk="tokens", quantised="all")
    async with served(tmp_path, storage=storage) as (index, calls):
        await index.upsert(SPACE, [POINT])
        vectors = calls.last("Collections/Create").vectors_config.params_map.map
        assert vectors["pooled"].on_disk is False
        assert vectors["tokens"].on_disk is True
        assert all(vector.quantization_config.scalar.always_ram for vector in vectors.values())
        assert ids(await index.search(SPACE, X, EVERYTHING, 5)) == [memory(1)]
        [query] = calls.last("Points/QueryBatch").query_points
        assert not query.params.exact
        assert query.params.quantization.rescore


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
async def test_api_key_is_sent_with_each_call(tmp_path: Path) -> None:
    calls = RecordedCalls()
    async with serving(tmp_path, interceptors=(calls,)) as port:
        index = over_grpc(port, api_key="secret")
        await index.spaces()
        await index.close()
    assert calls.metadata["api-key"] == "secret"


@pytest.mark.parametrize("shape", [(1, 1), (3, 31), (2, 32), (130, 128), (40, 5000)])
def test_token_vectors_are_encoded_as_the_protocol_says(shape: tuple[int, int]) -> None:
    rows: Matrix = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    plain = messages.MultiDenseVector(vectors=[messages.DenseVector(data=row.tolist()) for row in rows])
    assert rows_message(rows) == plain
    assert rows_message(np.asfortranarray(rows)) == plain
    assert dense_message(rows[0]) == plain.vectors[0]
