"""The revisions of the pipelines as this worker has read them from their topic.

Enters: records of the topic `pipelines`, in their order. Leaves: the revision that counts. Guaranteed: each worker that
has read the same records has the same revision; of two records with one number the first counts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from agents.rules.pipelines.validation import in_this_release, shipped_revision
from schemas.failures import Rejected, Unavailable
from schemas.messages.decoding import decode
from schemas.state.pipelines import Revision

log = structlog.get_logger()

MAX_APPEND_S = 15.0
"""How long a written revision is awaited: it is read back from Kafka within milliseconds."""

Write = Callable[[Revision], Awaitable[None]]
"""Writes a revision to the topic; returns when Kafka has it."""

OnChanged = Callable[[Revision], Awaitable[None]]
"""Awaited when another revision counts, before the edit that has made it is answered."""


async def _leave(_revision: Revision) -> None:
    """Nothing is to be done yet."""


class PipelineHistory:
    """Implements `agents.ports.pipelines.Revisions`."""

    def __init__(self, write: Write, on_changed: OnChanged = _leave) -> None:
        self.on_changed = on_changed
        self._write = write
        self._revisions = [shipped_revision()]
        self._by_request: dict[str, Revision] = {}
        self._read: set[tuple[int, str]] = set()
        self._news = asyncio.Condition()

    def current(self) -> Revision:
        return self._revisions[-1]

    def find(self, number: int) -> Revision | None:
        return self._revisions[number] if 0 <= number < len(self._revisions) else None

    def latest(self, limit: int) -> Sequence[Revision]:
        return self._revisions[::-1][:limit]

    def made_by(self, request: str) -> Revision | None:
        return self._by_request.get(request)

    async def append(self, revision: Revision) -> bool:
        wanted = (revision.number, revision.request)
        try:
            async with asyncio.timeout(MAX_APPEND_S):
                await self._write(revision)
                async with self._news:
                    await self._news.wait_for(lambda: wanted in self._read)
        except TimeoutError as late:
            raise Unavailable("the revision is not read back from Kafka yet; look whether it counts") from late
        counts = self.find(revision.number)
        return counts is not None and counts.request == revision.request

    async def take(self, value: bytes | None) -> None:
        """Read one record; what is no next revision is left out."""
        revision = _decoded(value)
        if revision is None:
            return
        self._read.add((revision.number, revision.request))
        if revision.number == len(self._revisions):
            topology = in_this_release(revision.topology)
            self._revisions.append(revision.model_copy(update={"topology": topology}))
            self._by_request[revision.request] = self._revisions[-1]
            await self.on_changed(self._revisions[-1])
        async with self._news:
            self._news.notify_all()


def _decoded(value: bytes | None) -> Revision | None:
    try:
        return decode(value, {"pipeline.v1": Revision})
    except Rejected as problem:
        log.warning("a record of the topic of pipelines can't be read", problem=problem.code)
        return None
