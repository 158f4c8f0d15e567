"""The collections of a Qdrant server: created at the first write, with fingerprint, payload indexes and alias.

Enters: vector spaces. Leaves: names of collections to read or write. Guaranteed: a collection with another fingerprint
is refused; every filtered field has its index before data arrives. The fingerprint is in the collection's metadata,
which needs Qdrant 1.16 or later.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse
from qdrant_client.models import (
    CreateAlias,
    CreateAliasOperation,
    Datatype,
    Distance,
    HnswConfigDiff,
    IntegerIndexParams,
    IntegerIndexType,
    KeywordIndexParams,
    KeywordIndexType,
    MultiVectorComparator,
    MultiVectorConfig,
    UpdateResult,
    VectorParams,
)

from schemas.failures import Unavailable
from schemas.models.vectors import Point
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.server.qdrant_calls import await_answer, await_applied, is_missing
from streams.adapters.vectors.shared.qdrant_payload import PARTITION, TENANT, TIME, alias_name, indexed_fields
from streams.adapters.vectors.shared.qdrant_vectors import POOLED, TOKENS
from streams.adapters.vectors.shared.vector_contract import check_fingerprint

T = TypeVar("T")

FINGERPRINT_KEY = "fingerprint"
"""The key in a collection's metadata."""

NO_GRAPHS = HnswConfigDiff(m=0, payload_m=0)
"""No HNSW graph: every search is exact and within one boundary, which the payload index finds."""


@dataclass
class KnownCollection:
    """A collection that exists: its fingerprint, and the fields that this process knows to be indexed."""

    fingerprint: Fingerprint
    indexed: set[str] = field(default_factory=set)


class ServerCollections:
    """Creates a server's collections, and caches what this process knows of them."""

    def __init__(self, client: AsyncQdrantClient, prefix: str, timeout_s: float) -> None:
        """`prefix` starts the name of every collection and alias; `timeout_s` is that of one request."""
        self._client = client
        self._prefix = prefix
        self._timeout_s = timeout_s
        self._known: dict[str, KnownCollection] = {}
        self._preparing = asyncio.Lock()

    async def readable(self, space: VectorSpace) -> str | None:
        """Return the collection's name, None if it does not exist. Raises ValueError for another fingerprint."""
        name = self._prefix + space.collection
        known = self._known.get(name) or await self._look_up(name)
        if known is None:
            return None
        check_fingerprint(space, known.fingerprint)
        return name

    async def writable(self, space: VectorSpace, points: Sequence[Point]) -> str:
        """Return the name of a collection that is ready for these points: created, indexed, with its alias."""
        # One at a time: a second writer that finds the collection could otherwise write before its indexes exist.
        async with self._preparing:
            name = await self.readable(space) or await self._create(space)
            indexed = self._known[name].indexed
            if not indexed:
                await self._ensure_alias(space, name)
            for path in [path for path in indexed_fields(points) if path not in indexed]:
                await self.write(
                    name, self._client.create_payload_index(name, path, server_index_params(path), wait=True)
                )
                indexed.add(path)
        return name

    async def fingerprints(self) -> Mapping[str, Fingerprint]:
        """Return the fingerprints of the collections with this prefix, by the rest of their names."""
        listed = (await await_answer(self._client.get_collections(), self._timeout_s)).collections
        names = [one.name for one in listed if one.name.startswith(self._prefix)]
        found = [(name.removeprefix(self._prefix), await self._fingerprint(name)) for name in names]
        return {name: fingerprint for name, fingerprint in found if fingerprint}

    async def ask(self, name: str, request: Awaitable[T]) -> T:
        """Await a response about a collection; forget the collection if it was deleted meanwhile."""
        try:
            return await await_answer(request, self._timeout_s)
        except Unavailable as error:
            self._forget_missing(name, error)
            raise

    async def write(self, name: str, request: Awaitable[UpdateResult]) -> None:
        """Await that a write is applied; forget the collection if it was deleted meanwhile."""
        try:
            await await_applied(request, self._timeout_s)
        except Unavailable as error:
            self._forget_missing(name, error)
            raise

    async def _create(self, space: VectorSpace) -> str:
        name = self._prefix + space.collection
        shape = server_vector_params(space.fingerprint)
        metadata = {FINGERPRINT_KEY: space.fingerprint.model_dump()}
        create = self._client.create_collection(name, shape, hnsw_config=NO_GRAPHS, metadata=metadata)
        try:
            await self.ask(name, create)
        except UnexpectedResponse:
            # Another worker may have created it first.
            if await self.readable(space) is None:
                raise
        self._known.setdefault(name, KnownCollection(space.fingerprint))
        await self._point_alias(space, name)
        return name

    async def _ensure_alias(self, space: VectorSpace, name: str) -> None:
        """Set the alias if it is missing after a failure; one to another collection stays."""
        present = (await self.ask(name, self._client.get_aliases())).aliases
        if self._prefix + alias_name(space.mode) not in {one.alias_name for one in present}:
            await self._point_alias(space, name)

    async def _point_alias(self, space: VectorSpace, name: str) -> None:
        pointer = CreateAlias(collection_name=name, alias_name=self._prefix + alias_name(space.mode))
        await self.ask(name, self._client.update_collection_aliases([CreateAliasOperation(create_alias=pointer)]))

    async def _look_up(self, name: str) -> KnownCollection | None:
        if not await self.ask(name, self._client.collection_exists(name)):
            return None
        fingerprint = await self._fingerprint(name)
        if fingerprint is None:
            raise ValueError(
                f"collection {name} has no fingerprint: another program created it, or Qdrant is older than 1.16"
            )
        return self._known.setdefault(name, KnownCollection(fingerprint))

    async def _fingerprint(self, name: str) -> Fingerprint | None:
        metadata = (await self.ask(name, self._client.get_collection(name))).config.metadata or {}
        return Fingerprint.model_validate(metadata[FINGERPRINT_KEY]) if FINGERPRINT_KEY in metadata else None

    def _forget_missing(self, name: str, error: Unavailable) -> None:
        if is_missing(error):
            self._known.pop(name, None)


def server_vector_params(fingerprint: Fingerprint) -> VectorParams | dict[str, VectorParams]:
    """Return the parameters of the pooled vector and, if the space has them, of the token vectors."""
    pooled = VectorParams(size=fingerprint.dim, distance=Distance.COSINE)
    if not fingerprint.token_dim:
        return pooled
    tokens = VectorParams(
        size=fingerprint.token_dim,
        distance=Distance.DOT,
        multivector_config=MultiVectorConfig(comparator=MultiVectorComparator.MAX_SIM),
        datatype=Datatype.FLOAT16,
    )
    return {POOLED: pooled, TOKENS: tokens}


def server_index_params(path: str) -> KeywordIndexParams | IntegerIndexParams:
    """Return the parameters of a payload field's index."""
    keyword = KeywordIndexParams(type=KeywordIndexType.KEYWORD, is_tenant=True if path == TENANT else None)
    numbers = {
        PARTITION: IntegerIndexParams(type=IntegerIndexType.INTEGER, lookup=True, range=False),
        TIME: IntegerIndexParams(type=IntegerIndexType.INTEGER, lookup=False, range=True),
    }
    return numbers.get(path, keyword)
