"""The collections of a Qdrant server: created at the first write, with fingerprint, payload indexes and alias.

Guaranteed: a collection with another fingerprint is refused (it is in the metadata, which needs Qdrant 1.16); every
filtered field has its index before data arrives; a request gets its response, or `Unavailable` within the timeout, or
the client's own error if the same request would be rejected again (a defect).
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from qdrant_client import AsyncQdrantClient, models

from schemas.failures import Unavailable
from schemas.models.vectors import Point
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.server.server_answers import REFUSALS, HangGuard, await_answer, await_applied, is_missing
from streams.adapters.vectors.server.stored_points import IN_MEMORY, MEMORY, ServerStorage
from streams.adapters.vectors.shared import qdrant_payload as payload
from streams.adapters.vectors.shared.vector_contract import check_fingerprint

T = TypeVar("T")

FINGERPRINT_KEY = "fingerprint"

NO_GRAPHS = models.HnswConfigDiff(m=0, payload_m=0)
"""No HNSW graph: every search is exact and within one boundary, which the payload index finds."""


@dataclass
class KnownCollection:
    """A collection that exists: its fingerprint, and the fields that this process knows to be indexed."""

    fingerprint: Fingerprint
    indexed: set[str] = field(default_factory=set)


class ServerCollections:
    """Creates a server's collections, and caches what this process knows of them."""

    def __init__(
        self, client: AsyncQdrantClient, prefix: str, timeout_s: float, storage: ServerStorage = IN_MEMORY
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._storage = storage
        self.guard = HangGuard(client.get_collections, timeout_s)
        """Refuses requests while the server hangs."""
        self._existing: dict[str, KnownCollection] = {}
        self._fingerprints: dict[str, Fingerprint] = {}
        self._preparing = asyncio.Lock()

    async def readable(self, space: VectorSpace) -> str | None:
        """Return the collection's name, None if it does not exist. Raises ValueError for another fingerprint."""
        name = self._prefix + space.collection
        if name not in self._existing:
            if not await self.ask(name, self._client.collection_exists(name)):
                return None
            fingerprint = await self._fingerprint(name)
            if fingerprint is None:
                raise ValueError(
                    f"collection {name} has no fingerprint: another program created it, or Qdrant is older than 1.16"
                )
            collection = self._existing.setdefault(name, KnownCollection(fingerprint))
        else:
            collection = self._existing[name]
        check_fingerprint(space, collection.fingerprint)
        return name

    async def writable(self, space: VectorSpace, points: Sequence[Point]) -> str:
        """Return the name of a collection that is ready for these points: created, indexed, with its alias."""
        # One at a time: a second writer that finds the collection could otherwise write before its indexes exist.
        async with self._preparing:
            name = await self.readable(space) or await self._create(space)
            indexed = self._existing[name].indexed
            if not indexed:
                # The alias is missing after a failure; one to another collection stays.
                aliases = (await self.ask(name, self._client.get_aliases())).aliases
                if self._prefix + payload.alias_name(space.mode) not in {alias.alias_name for alias in aliases}:
                    await self._point_alias(space, name)
            fields = [*payload.indexed_fields(points), *([MEMORY] if space.fingerprint.passages is not None else [])]
            for path in [path for path in fields if path not in indexed]:
                keyword = models.KeywordIndexParams(
                    type=models.KeywordIndexType.KEYWORD, is_tenant=True if path == payload.TENANT else None
                )
                numbers = {
                    payload.PARTITION: models.IntegerIndexParams(
                        type=models.IntegerIndexType.INTEGER, lookup=True, range=False
                    ),
                    payload.TIME: models.IntegerIndexParams(
                        type=models.IntegerIndexType.INTEGER, lookup=False, range=True
                    ),
                }
                await self.write(
                    name, self._client.create_payload_index(name, path, numbers.get(path, keyword), wait=True)
                )
                indexed.add(path)
        return name

    async def fingerprints(self) -> Mapping[str, Fingerprint]:
        """Return the fingerprints of the collections with this prefix, by the rest of their names.

        One request, and one for each collection that this process has not seen: a name has one fingerprint for ever.
        """
        listed = (await await_answer(self._client.get_collections(), self.guard)).collections
        names = [each.name for each in listed if each.name.startswith(self._prefix)]
        unseen = [name for name in names if name not in self._fingerprints]
        read = await asyncio.gather(*map(self._fingerprint, unseen))
        self._fingerprints |= {name: own for name, own in zip(unseen, read, strict=True) if own is not None}
        return {
            name.removeprefix(self._prefix): self._fingerprints[name] for name in names if name in self._fingerprints
        }

    async def delete(self, collection: str) -> None:
        name = self._prefix + collection
        await self.ask(name, self._client.delete_collection(name))
        self._existing.pop(name, None)

    async def ask(self, name: str, request: Awaitable[T]) -> T:
        """Await a response about a collection; forget the collection if it was deleted meanwhile."""
        try:
            return await await_answer(request, self.guard)
        except Unavailable as error:
            self._forget_missing(name, error)
            raise

    async def write(self, name: str, request: Awaitable[models.UpdateResult]) -> None:
        """Await that a write is applied; forget the collection if it was deleted meanwhile."""
        try:
            await await_applied(request, self.guard)
        except Unavailable as error:
            self._forget_missing(name, error)
            raise

    async def _create(self, space: VectorSpace) -> str:
        name = self._prefix + space.collection
        create = self._client.create_collection(
            name,
            self._storage.vector_params(space.fingerprint),
            hnsw_config=NO_GRAPHS,
            on_disk_payload=self._storage.payload_on_disk,
            metadata={FINGERPRINT_KEY: space.fingerprint.model_dump()},
        )
        try:
            await self.ask(name, create)
        except REFUSALS:
            # Another worker may have created it first.
            if await self.readable(space) is None:
                raise
        self._existing.setdefault(name, KnownCollection(space.fingerprint))
        await self._point_alias(space, name)
        return name

    async def _point_alias(self, space: VectorSpace, name: str) -> None:
        pointer = models.CreateAlias(collection_name=name, alias_name=self._prefix + payload.alias_name(space.mode))
        await self.ask(
            name, self._client.update_collection_aliases([models.CreateAliasOperation(create_alias=pointer)])
        )

    async def _fingerprint(self, name: str) -> Fingerprint | None:
        metadata = (await self.ask(name, self._client.get_collection(name))).config.metadata or {}
        return Fingerprint.model_validate(metadata[FINGERPRINT_KEY]) if FINGERPRINT_KEY in metadata else None

    def _forget_missing(self, name: str, error: Unavailable) -> None:
        if is_missing(error.__cause__):
            self._existing.pop(name, None)
