"""The points of a memory on a server: one for the whole text, and one for each passage of a cut text.

The whole text alone has a partition, a content hash and a vector named `POOLED`, so that counts, hashes and searches
see it alone; of a cut text it has the length of that vector, of which a server keeps the direction. Passages have
`PASSAGE`; `TOKENS` lie with the passages of a cut text, else with the whole. In a space of cut texts every point names
its memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar
from uuid import UUID, uuid5

import numpy as np
from qdrant_client import grpc, models

from schemas.models.vectors import Encoded, Matrix, PassageVectors, Point, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.shared import qdrant_payload as payload

PASSAGE = "passage"
"""The vector of a passage, compared by cosine."""

MEMORY, PART = "memory_id", "part"
"""The memory of a point, and the number of a passage in it."""

PASSAGE_COUNT = "passages"
"""In the payload of a cut text: how many passages it has."""

WHOLE_ONLY = frozenset({payload.PARTITION, payload.HASH, payload.LENGTH})
"""Fields of whole texts alone."""


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point as it is written: its vectors by name, and its payload."""

    point_id: str
    vectors: Mapping[str, Vector | Matrix]
    payload: Mapping[str, Any]


def stored_points(fingerprint: Fingerprint, points: Sequence[Point]) -> Iterator[StoredPoint]:
    for point in points:
        fields = payload.payload_of(point)
        if fingerprint.passages is None:
            yield StoredPoint(point.memory_id, _named(payload.POOLED, point.vector, point.tokens), fields)
            continue
        fields[MEMORY] = point.memory_id
        passages = point.passages
        if passages is None:
            yield StoredPoint(point.memory_id, _named(payload.POOLED, point.vector, point.tokens), fields)
            continue
        count = {PASSAGE_COUNT: len(passages)}
        yield StoredPoint(point.memory_id, {payload.POOLED: point.vector}, fields | count)
        own = {name: value for name, value in fields.items() if name not in WHOLE_ONLY}
        ends = np.cumsum(passages.token_counts)
        for part, (pooled, start, end) in enumerate(
            zip(passages.pooled, ends - passages.token_counts, ends, strict=True)
        ):
            tokens = None if point.tokens is None else point.tokens[start:end]
            yield StoredPoint(_passage_id(point.memory_id, part), _named(PASSAGE, pooled, tokens), own | {PART: part})


def _named(name: str, vector: Vector, tokens: Matrix | None) -> dict[str, Vector | Matrix]:
    return {name: vector} if tokens is None or not len(tokens) else {name: vector, payload.TOKENS: tokens}


def _passage_id(memory_id: str, part: int) -> str:
    return str(uuid5(UUID(memory_id), str(part)))


def passage_ids(memory: models.Record) -> list[str]:
    """Return the ids of a memory's passages; none if it is not cut."""
    count = (memory.payload or {}).get(PASSAGE_COUNT, 0)
    return [_passage_id(str(memory.id), part) for part in range(count)]


def decode_vectors(fingerprint: Fingerprint, memory: models.Record, passages: Sequence[models.Record]) -> Encoded:
    """Return the vectors of a memory whose points were read, with its passages in order."""
    encoded = payload.decode_point_vectors(fingerprint, memory.vector)
    if not passages:
        return encoded
    stored = [passage.vector for passage in passages if isinstance(passage.vector, dict)]
    no_rows = np.empty((0, fingerprint.token_dim))
    rows = [np.array(vectors.get(payload.TOKENS) or no_rows, np.float32) for vectors in stored]
    pooled = np.array([vectors[PASSAGE] for vectors in stored], np.float32)
    counts = np.array(list(map(len, rows)))
    return replace(encoded, tokens=np.concatenate(rows), passages=PassageVectors(pooled, counts))


def passages_of(memory_ids: Sequence[str]) -> models.Filter:
    return models.Filter(
        must=[models.FieldCondition(key=MEMORY, match=models.MatchAny(any=list(memory_ids)))],
        must_not=[models.HasIdCondition(has_id=list(memory_ids))],
    )


def points_of(memory_ids: Sequence[str]) -> models.Filter:
    """Return a filter that admits all points of these memories, of a space of cut texts."""
    return models.Filter(must=[models.FieldCondition(key=MEMORY, match=models.MatchAny(any=list(memory_ids)))])


T = TypeVar("T")

StoredParts = Literal["none", "tokens", "all"]
"""Of a collection: nothing; the token vectors, most of its size; all vectors (and, on disk, the payload)."""

OVERSAMPLING = 3.0
"""Candidates by quantised vectors for each wanted one, compared again by the original vectors."""

INT8 = models.ScalarQuantization(
    scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
)
"""A fourth of pooled vectors and half of token vectors, in memory."""


@dataclass(frozen=True, slots=True)
class ServerStorage:
    """`on_disk`: originals that are read from disk; `quantised`: vectors that are searched by 8-bit copies in memory.

    Without `quantised` every search is exact.
    """

    on_disk: StoredParts = "none"
    quantised: StoredParts = "none"

    @property
    def payload_on_disk(self) -> bool | None:
        """Whether payload is on disk; None: as the server is configured."""
        return True if self.on_disk == "all" else None

    def vector_params(self, fingerprint: Fingerprint) -> models.VectorParams | dict[str, models.VectorParams]:
        pooled = models.VectorParams(
            size=fingerprint.dim,
            distance=models.Distance.COSINE,
            on_disk=_if_in(self.on_disk, "all", value=True),
            quantization_config=_if_in(self.quantised, "all", value=INT8),
        )
        if payload.pooled_name(fingerprint) is None:
            return pooled
        named = {payload.POOLED: pooled} | ({PASSAGE: pooled} if fingerprint.passages is not None else {})
        if not fingerprint.token_dim:
            return named
        tokens = models.VectorParams(
            size=fingerprint.token_dim,
            distance=models.Distance.DOT,
            multivector_config=models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM),
            datatype=models.Datatype.FLOAT16,
            on_disk=_if_in(self.on_disk, "tokens", "all", value=True),
            quantization_config=_if_in(self.quantised, "tokens", "all", value=INT8),
        )
        return named | {payload.TOKENS: tokens}

    def rest_search_params(self) -> models.SearchParams:
        """Return the parameters of every search. Exact ones ignore quantised vectors, and an older collection's graph.

        A collection has no graph, so without `exact` too all admitted points are compared.
        """
        if self.quantised == "none":
            return models.SearchParams(exact=True)
        again = models.QuantizationSearchParams(ignore=False, rescore=True, oversampling=OVERSAMPLING)
        return models.SearchParams(exact=False, quantization=again)

    def grpc_search_params(self) -> grpc.SearchParams:
        """Return the same as a message."""
        if self.quantised == "none":
            return grpc.SearchParams(exact=True)
        again = grpc.QuantizationSearchParams(ignore=False, rescore=True, oversampling=OVERSAMPLING)
        return grpc.SearchParams(exact=False, quantization=again)


IN_MEMORY = ServerStorage()
"""Everything in memory and every search exact: nothing is set."""


def _if_in(setting: StoredParts, *wanted: StoredParts, value: T) -> T | None:
    return value if setting in wanted else None
