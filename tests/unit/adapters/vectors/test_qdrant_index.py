"""The index on a Qdrant server: requests, and a server that is down, slow or broken."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace

import numpy as np
import pytest
from qdrant_client.http.exceptions import UnexpectedResponse

from schemas.failures import Unavailable
from schemas.models.vectors import MemoryFilter, Point
from streams.adapters.vectors.server.qdrant_collections import MAX_HANGS
from streams.adapters.vectors.server.qdrant_index import QdrantIndex
from tests.builders.spaces import space_of
from tests.unit.adapters.vectors.qdrant_stub import QdrantStub, qdrant_stub

SPACE = space_of(dim=2)
TOKEN_SPACE = space_of(dim=2, token_dim=2)
NAME = f"test-{SPACE.collection}"
ID = "00000000-0000-4000-8000-000000000001"
ONES = np.ones(2, dtype=np.float32)
ROWS = np.ones((3, 2), dtype=np.float32)
POINT = Point(ID, ONES, "u1", 3, {"user_id": "u1"}, "general", "episodic", 5, "hash")
EVERYTHING = MemoryFilter("u1")


@pytest.fixture
async def stub() -> AsyncIterator[QdrantStub]:
    async with qdrant_stub() as running:
        yield running


@pytest.fixture
async def index(stub: QdrantStub) -> AsyncIterator[QdrantIndex]:
    made = QdrantIndex.connect(stub.url, prefix="test-", timeout_s=5)
    yield made
    await made.close()


def every_call(index: QdrantIndex) -> list[Awaitable[object]]:
    return [
        index.upsert(SPACE, [POINT]),
        index.delete(SPACE, [ID]),
        index.search(SPACE, ONES, EVERYTHING, 5),
        index.maxsim(TOKEN_SPACE, ROWS, EVERYTHING, 5),
        index.hashes(SPACE, [ID]),
        index.vectors(SPACE, [ID]),
        index.count(SPACE, 0),
        index.spaces(),
    ]


async def assert_unavailable(index: QdrantIndex) -> None:
    for call in every_call(index):
        with pytest.raises(Unavailable) as caught:
            await call
        assert caught.value.__cause__


async def test_a_closed_port_is_unavailable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    index = QdrantIndex.connect(f"http://127.0.0.1:{port}")
    await assert_unavailable(index)
    await index.close()


@pytest.mark.parametrize("seen_before", [False, True])
@pytest.mark.parametrize("status", [500, 502, 503, 429, 408, 401, 403])
async def test_transient_failure_is_unavailable(
    index: QdrantIndex, stub: QdrantStub, status: int, *, seen_before: bool
) -> None:
    if seen_before:
        await index.upsert(SPACE, [POINT])
    stub.status = status
    await assert_unavailable(index)
    stub.status = None
    await index.upsert(SPACE, [POINT])


async def test_busy_server_with_retry_after_is_unavailable(index: QdrantIndex, stub: QdrantStub) -> None:
    stub.status, stub.headers = 429, "retry-after: 1\r\n"
    await assert_unavailable(index)


@pytest.mark.parametrize("seen_before", [False, True])
async def test_hanging_server_is_unavailable_within_the_timeout(stub: QdrantStub, *, seen_before: bool) -> None:
    index = QdrantIndex.connect(stub.url, prefix="test-", timeout_s=1)
    if seen_before:
        await index.upsert(SPACE, [POINT])
    stub.hangs = True
    outcomes = await asyncio.gather(*every_call(index), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {Unavailable}
    await index.close()


async def test_server_that_hangs_is_asked_no_more_until_it_answers(stub: QdrantStub) -> None:
    index = QdrantIndex.connect(stub.url, prefix="test-", timeout_s=0.3)
    await index.upsert(SPACE, [POINT])
    stub.hangs = True
    for _ in range(MAX_HANGS):
        with pytest.raises(Unavailable):
            await index.search(SPACE, ONES, EVERYTHING, 5)
    asked = len(stub.asked)
    async with asyncio.timeout(0.3):
        for call in every_call(index):
            with pytest.raises(Unavailable, match="does not answer"):
                await call
    assert index.problem()
    assert set(stub.lines[asked:]) <= {"GET /collections"}
    stub.hangs = False
    async with asyncio.timeout(5):
        while index.problem():
            await asyncio.sleep(0.05)
    await index.upsert(SPACE, [POINT])
    await index.close()


async def test_refused_requests_are_no_hang(index: QdrantIndex, stub: QdrantStub) -> None:
    stub.status = 503
    for _ in range(2 * MAX_HANGS):
        await assert_unavailable(index)
    assert index.problem() is None


async def test_response_of_another_program_is_unavailable(index: QdrantIndex, stub: QdrantStub) -> None:
    stub.body = b"<html>a proxy's page</html>"
    await assert_unavailable(index)


async def test_permanently_refused_request_raises_the_clients_error(index: QdrantIndex, stub: QdrantStub) -> None:
    stub.status = 400
    for call in every_call(index):
        with pytest.raises(UnexpectedResponse):
            await call


@pytest.mark.parametrize("status", ["acknowledged", "wait_timeout"])
async def test_a_write_that_is_not_applied_yet_is_unavailable(
    index: QdrantIndex, stub: QdrantStub, status: str
) -> None:
    await index.upsert(SPACE, [POINT])
    stub.write_result["status"] = status
    for call in (index.upsert(SPACE, [POINT]), index.delete(SPACE, [ID])):
        with pytest.raises(Unavailable, match="not applied"):
            await call


async def test_filtered_fields_are_indexed_before_data_arrives(index: QdrantIndex, stub: QdrantStub) -> None:
    await index.upsert(SPACE, [POINT])
    indexes = {asked.body["field_name"]: asked.body["field_schema"] for asked in stub.asked if "/index" in asked.line}
    tenant, partition, time = (indexes.pop(name) for name in ("boundary", "partition", "occurred_ms"))
    assert tenant["type"] == "keyword"
    assert tenant["is_tenant"] is True
    assert partition["type"] == "integer"
    assert partition["lookup"] is True
    assert partition["range"] is False
    assert time["type"] == "integer"
    assert time["lookup"] is False
    assert time["range"] is True
    assert {name: schema["type"] for name, schema in indexes.items()} == dict.fromkeys(
        ("mode", "type", "scope.user_id"), "keyword"
    )
    assert stub.lines[-1] == f"PUT /collections/{NAME}/points?wait=true"
    assert all("wait=true" in line for line in stub.lines if "/index" in line)
    assert "/points" not in " ".join(stub.lines[:-1])


async def test_collection_has_fingerprint_and_alias_but_no_graphs(index: QdrantIndex, stub: QdrantStub) -> None:
    await index.upsert(SPACE, [POINT])
    [created] = [asked.body for asked in stub.asked if asked.line == f"PUT /collections/{NAME}"]
    assert created["vectors"] == {"size": 2, "distance": "Cosine"}
    assert created["hnsw_config"] == {"m": 0, "payload_m": 0}
    assert created["metadata"] == {"fingerprint": SPACE.fingerprint.model_dump()}
    assert stub.aliases == {"test-general.alias": NAME}


async def test_second_write_sends_only_the_write(index: QdrantIndex, stub: QdrantStub) -> None:
    await index.upsert(SPACE, [POINT])
    stub.asked.clear()
    await index.upsert(SPACE, [POINT])
    await index.search(SPACE, ONES, EVERYTHING, 5)
    assert stub.lines == [f"PUT /collections/{NAME}/points?wait=true", f"POST /collections/{NAME}/points/query/batch"]
    [query] = stub.asked[1].body["searches"]
    assert query["with_payload"] is False
    assert query["with_vector"] is False


async def test_token_vectors_are_stored_in_half_precision(index: QdrantIndex, stub: QdrantStub) -> None:
    await index.upsert(TOKEN_SPACE, [replace(POINT, tokens=ROWS)])
    [created] = [asked.body for asked in stub.asked if asked.line == f"PUT /collections/test-{TOKEN_SPACE.collection}"]
    assert created["vectors"] == {
        "pooled": {"size": 2, "distance": "Cosine"},
        "tokens": {
            "size": 2, "distance": "Dot", "multivector_config": {"comparator": "max_sim"}, "datatype": "float16"
        },
    }  # fmt: skip
    [written] = stub.asked[-1].body["points"]
    assert written["vector"] == {"pooled": [1, 1], "tokens": [[1, 1]] * 3}


async def test_every_search_is_exact_and_names_its_vector(index: QdrantIndex, stub: QdrantStub) -> None:
    for space, name in ((SPACE, None), (TOKEN_SPACE, "pooled")):
        stub.collection = None
        await index.upsert(space, [POINT])
        stub.asked.clear()
        await index.search(space, ONES, EVERYTHING, 5)
        [query] = stub.asked[0].body["searches"]
        assert query.get("using") == name
        assert query["params"]["exact"] is True
    await index.maxsim(TOKEN_SPACE, ROWS, EVERYTHING, 5)
    await index.maxsim(TOKEN_SPACE, ROWS, EVERYTHING, 5, [ID])
    [over_all], [over_one] = stub.asked[-2].body["searches"], stub.asked[-1].body["searches"]
    assert over_all["params"]["exact"]
    assert over_all["using"] == "tokens"
    assert over_all["query"] == {"nearest": ROWS.tolist()}
    assert over_all["limit"] == 6
    assert {"has_id": [ID]} in over_one["filter"]["must"]
    assert {"has_id": [ID]} not in over_all["filter"]["must"]


async def test_another_process_keeps_the_alias(index: QdrantIndex, stub: QdrantStub) -> None:
    await index.upsert(SPACE, [POINT])
    stub.aliases["test-general.alias"] = "a newer one"
    stub.asked.clear()
    other = QdrantIndex.connect(stub.url, prefix="test-")
    await other.upsert(SPACE, [POINT])
    await other.close()
    assert len([line for line in stub.lines if "/index" in line]) == 6
    assert stub.aliases == {"test-general.alias": "a newer one"}
    assert f"PUT /collections/{NAME}" not in stub.lines


async def test_missing_alias_is_set_by_the_next_process(index: QdrantIndex, stub: QdrantStub) -> None:
    await index.upsert(SPACE, [POINT])
    stub.aliases.clear()
    other = QdrantIndex.connect(stub.url, prefix="test-")
    await other.upsert(SPACE, [POINT])
    await other.close()
    assert stub.aliases == {"test-general.alias": NAME}


async def test_deleted_collection_is_created_again(index: QdrantIndex, stub: QdrantStub) -> None:
    await index.upsert(SPACE, [POINT])
    stub.collection = None
    with pytest.raises(Unavailable):
        await index.search(SPACE, ONES, EVERYTHING, 5)
    assert await index.search(SPACE, ONES, EVERYTHING, 5) == []
    await index.upsert(SPACE, [POINT])
    stub.collection = None
    with pytest.raises(Unavailable):
        await index.upsert(SPACE, [POINT])
    await index.upsert(SPACE, [POINT])
    assert stub.collection


async def test_a_collection_without_a_fingerprint_is_refused(index: QdrantIndex, stub: QdrantStub) -> None:
    stub.collection = {"vectors": {"size": 2, "distance": "Cosine"}}
    for call in (index.upsert(SPACE, [POINT]), index.count(SPACE, 0)):
        with pytest.raises(ValueError, match="has no fingerprint"):
            await call


async def test_collection_created_by_another_worker_is_used(index: QdrantIndex, stub: QdrantStub) -> None:
    stub.another_is_faster = True
    await index.upsert(SPACE, [POINT])
    assert stub.lines[-1] == f"PUT /collections/{NAME}/points?wait=true"


async def test_concurrent_writers_wait_for_the_indexes(index: QdrantIndex, stub: QdrantStub) -> None:
    await asyncio.gather(index.upsert(SPACE, [POINT]), index.upsert(SPACE, [POINT]))
    kinds = ["index" if "/index" in line else "points" for line in stub.lines if "/index" in line or "/points" in line]
    assert kinds == ["index"] * 6 + ["points"] * 2


@pytest.mark.parametrize(
    "nothing", [MemoryFilter("u1", {"project_id": ()}), MemoryFilter("u1", modes=()), MemoryFilter("u1", types=())]
)
async def test_filter_that_admits_nothing_sends_no_request(
    index: QdrantIndex, stub: QdrantStub, nothing: MemoryFilter
) -> None:
    await index.upsert(SPACE, [POINT])
    stub.asked.clear()
    assert await index.search(SPACE, ONES, nothing, 5) == []
    assert stub.asked == []
