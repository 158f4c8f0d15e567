"""The collections of a Qdrant server: created at the first write, with fingerprint, payload indexes and alias.

Guaranteed: a collection with another fingerprint is refused (it is in the metadata, which needs Qdrant 1.16); every
filtered field has its index before data arrives; a request gets its response, or `Unavailable` within the timeout, or
the client's own error if the same request would be rejected again (a defect).
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from json import JSONDecodeError
from typing import TypeVar

from grpc import StatusCode
from grpc.aio import AioRpcError
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from schemas.failures import Unavailable
from schemas.models.vectors import Point
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.server.stored_points import IN_MEMORY, MEMORY, ServerStorage
from streams.adapters.vectors.shared import qdrant_payload as payload
from streams.adapters.vectors.shared.vector_contract import check_fingerprint

T = TypeVar("T")

# Answers of a Qdrant server, over REST and gRPC: `Unavailable` for those that a retry may get over.
#
# Guaranteed: after `MAX_HANGS` requests in a row without an answer in time no request is sent until the server has
# answered a probe in the background, so no question waits for a server that is known to hang.

MAX_HANGS = 3
"""Requests in a row without an answer in time: one may be a pause of the server's."""

PROBE_PAUSES_S = (0.5, 1.0, 2.0, 4.0)
"""Pauses before the probes, then the last one again. A probe itself takes up to the timeout while the server hangs."""

HANG_SHARE = 0.5
"""The share of the timeout after which a failure counts as no answer in time; a refusal takes milliseconds."""


class HangGuard:
    """Counts requests without an answer, and probes the server while none is sent."""

    def __init__(self, probe: Callable[[], Awaitable[models.CollectionsResponse]], timeout_s: float) -> None:
        """`probe` is a cheap request; `timeout_s` is the longest that one request takes."""
        self._probe = probe
        self._timeout_s = timeout_s
        self._hangs = 0
        self._probing: asyncio.Task[None] | None = None

    @property
    def problem(self) -> str | None:
        """The reason why no request is sent; None if requests are."""
        return None if self._probing is None else "the vector server accepts requests and does not answer"

    async def answer(self, request: Awaitable[T]) -> T:
        """Await a response, at most the timeout in all (the client's own timeout is between two bytes).

        Raises Unavailable at once while the server hangs, and the client's errors.
        """
        if (problem := self.problem) is not None:
            if inspect.iscoroutine(request):
                request.close()
            raise Unavailable(problem)
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await request
        except (Exception, asyncio.CancelledError):
            # A question that gives up before the timeout has waited in vain, too.
            is_hang = asyncio.get_running_loop().time() - began >= HANG_SHARE * self._timeout_s
            self._hangs = self._hangs + 1 if is_hang else 0
            if self._hangs >= MAX_HANGS and self._probing is None:
                self._probing = asyncio.create_task(self._until_answered())
            raise
        self._hangs = 0
        return response

    def close(self) -> None:
        if self._probing is not None:
            self._probing.cancel()

    async def _until_answered(self) -> None:
        """Probe the server until it answers, or refuses at once: then requests tell more."""
        pauses = iter(PROBE_PAUSES_S)
        try:
            while self._hangs:
                await asyncio.sleep(next(pauses, PROBE_PAUSES_S[-1]))
                began = asyncio.get_running_loop().time()
                try:
                    async with asyncio.timeout(self._timeout_s):
                        await self._probe()
                except Exception:
                    if asyncio.get_running_loop().time() - began >= HANG_SHARE * self._timeout_s:
                        continue
                self._hangs = 0
        finally:
            self._probing = None


NO_ANSWER_ERRORS = (TimeoutError, ResponseHandlingException, QdrantException, JSONDecodeError, UnicodeDecodeError)
"""No connection, a timeout, a busy server, or a proxy's page in place of a response."""

REFUSALS = (UnexpectedResponse, AioRpcError)
"""What the client raises where the server, or what stands before it, has answered by a status."""

TRANSIENT_STATUSES = frozenset({401, 403, 404, 408, 429})
"""HTTP statuses below 500 that a retry may not get: the API key is corrected, the collection created again."""

PERMANENT_CODES = frozenset({StatusCode.INVALID_ARGUMENT, StatusCode.OUT_OF_RANGE, StatusCode.ALREADY_EXISTS})
"""Codes of gRPC that a retry gets again. UNIMPLEMENTED is another program's answer at the same address."""


def is_transient(error: UnexpectedResponse | AioRpcError) -> bool:
    """True if a retry may succeed."""
    if isinstance(error, AioRpcError):
        return error.code() not in PERMANENT_CODES
    status = error.status_code
    return status is None or status in TRANSIENT_STATUSES or status >= 500


def is_missing(error: BaseException | None) -> bool:
    """True if the server answered that the collection does not exist."""
    if isinstance(error, AioRpcError):
        return bool(error.code() == StatusCode.NOT_FOUND)
    return isinstance(error, UnexpectedResponse) and error.status_code == 404


def describe(error: UnexpectedResponse | AioRpcError) -> str:
    """Return the server's response, with the remedy for a missing gRPC port."""
    if not isinstance(error, AioRpcError):
        return f"the vector server answered {error.status_code}"
    if error.code() == StatusCode.UNAVAILABLE:
        return f"no answer from the vector server by gRPC: {error.details()}; is MODESTREAM_QDRANT_GRPC_PORT open?"
    return f"the vector server answered {error.code().name}: {error.details()}"


async def await_answer(request: Awaitable[T], guard: HangGuard) -> T:
    """Await a response. Raises Unavailable for none in time, at once while the server hangs."""
    try:
        return await guard.answer(request)
    except NO_ANSWER_ERRORS as error:
        raise Unavailable(f"no answer from the vector server: {error!r}") from error
    except REFUSALS as error:
        if is_transient(error):
            raise Unavailable(describe(error)) from error
        raise


async def await_applied(write: Awaitable[models.UpdateResult], guard: HangGuard) -> None:
    """Await that a write is applied. Raises Unavailable if the server will apply it only later."""
    status = (await await_answer(write, guard)).status
    if status != models.UpdateStatus.COMPLETED:
        raise Unavailable(f"the vector server has not applied a write yet: {status}")


FINGERPRINT_KEY = "fingerprint"

NO_GRAPHS = models.HnswConfigDiff(m=0, payload_m=0)
"""No HNSW graph: every search is exact and within one boundary, which the payload index finds."""


@dataclass
class KnownCollection:
    """A collection that exists: its fingerprint, and the fields that this process knows to be indexed."""

    fingerprint: Fingerprint
    indexed: set[str] = field(default_factory=set)


class ServerCollections:
    """Creates a server's collections, and caches their state."""

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
