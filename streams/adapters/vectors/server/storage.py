"""What a Qdrant server keeps in memory and what on its disk, by settings, and what that means for a search."""

from dataclasses import dataclass
from typing import Literal, TypeVar

from qdrant_client import grpc, models

from schemas.state.modes import Fingerprint
from streams.adapters.vectors.server.stored_points import PASSAGE
from streams.adapters.vectors.shared import qdrant_payload as payload

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
        """Return the vectors of a new collection."""
        pooled = models.VectorParams(
            size=fingerprint.dim,
            distance=models.Distance.COSINE,
            on_disk=_if_in(self.on_disk, "all", found=True),
            quantization_config=_if_in(self.quantised, "all", found=INT8),
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
            on_disk=_if_in(self.on_disk, "tokens", "all", found=True),
            quantization_config=_if_in(self.quantised, "tokens", "all", found=INT8),
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


def _if_in(setting: StoredParts, *wanted: StoredParts, found: T) -> T | None:
    return found if setting in wanted else None
