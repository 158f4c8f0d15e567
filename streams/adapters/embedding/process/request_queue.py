"""The requests that wait for one embedder's process: queries first, each kind round robin by user.

Enters: texts with the boundary of their user. Leaves: the next one to write to the pipe. Guaranteed: few requests are
in the pipe, so that a flood of one user waits here, and another user's text behind at most one of the flood for each of
its own; a text that was in the process when it died is sent alone, and refused after `MAX_DEATHS` deaths.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass

from schemas.models.vectors import Encoded
from streams.adapters.embedding.process import frames
from streams.fair_queue import FairQueue

MAX_DEATHS = 3
"""Deaths of the process over one text, after which the text is refused: an outage of the machine kills at random."""

MAX_SUSPECTS = 1000
"""Texts whose deaths are counted. At most those in the pipe are added for each death."""

MAX_CHARS_IN_PIPE = 4000
"""Characters of passages in the pipe beyond which only a few are sent ahead: others would wait long behind them."""

FEW_PASSAGES_SHARE = 3 / 8
"""The share of the passages in the pipe that are sent ahead whatever their length."""

MAX_QUERIES_IN_PIPE = 2
"""The process answers one query at a time; the second one saves it the wait for the worker."""


@dataclass(eq=False, slots=True)
class EmbeddingRequest:
    """A text for the model. `waited` counts the ticks of the watchdog since it was written to the pipe."""

    kind: int
    prefix: str
    text: str
    answer: asyncio.Future[Encoded]
    waited: int = 0

    @property
    def key(self) -> bytes:
        """Identifies prefix and text."""
        return frames.request_key(frames.encode_request(self.prefix, self.text))


class TextDeaths:
    """Counts how often the process died over a text; the oldest counts are dropped first."""

    def __init__(self) -> None:
        self._deaths: OrderedDict[bytes, int] = OrderedDict()

    @property
    def has_any(self) -> bool:
        """True if there are deaths over any text."""
        return bool(self._deaths)

    def of(self, request: EmbeddingRequest) -> int:
        """Return the number of deaths over this text."""
        return self._deaths.get(request.key, 0) if self._deaths else 0

    def add(self, in_pipe: Collection[EmbeddingRequest], under_way: Collection[bytes]) -> None:
        """Count a death. Over several texts it makes each a suspect; only one that was alone is counted again.

        `under_way` has the keys of the texts that the process was at, those of other workers included.
        """
        for request in in_pipe:
            if request.key in under_way and (len(under_way) == 1 or not self.of(request)):
                self._deaths[request.key] = self.of(request) + 1
        while len(self._deaths) > MAX_SUSPECTS:
            self._deaths.popitem(last=False)

    def clear(self, request: EmbeddingRequest) -> None:
        """Forget the deaths over a text that was answered."""
        if self._deaths:
            self._deaths.pop(request.key, None)


class TextRefusedError(RuntimeError):
    """The process ended or hung over this text too often."""


class RequestQueue:
    """Requests in, the next one for the pipe out, as far as there is room."""

    def __init__(self, passages_in_pipe: int, deaths: TextDeaths) -> None:
        self._limits = {frames.QUERY: MAX_QUERIES_IN_PIPE, frames.PASSAGE: passages_in_pipe}
        self._waiting: dict[int, FairQueue[EmbeddingRequest]] = {kind: FairQueue() for kind in self._limits}
        self._suspects: FairQueue[EmbeddingRequest] = FairQueue()
        self._deaths = deaths
        self._is_refilling = True
        """False from when the pipe is full of passages until half of them are answered: so several go in one write."""

    def put(self, boundary: str, request: EmbeddingRequest) -> None:
        """Queue a request of a user."""
        queue = self._suspects if self._deaths.of(request) else self._waiting[request.kind]
        queue.put(boundary, request)

    def next(self, in_pipe: Collection[EmbeddingRequest]) -> EmbeddingRequest | None:
        """Return the next request; None if there is none, or no room. A suspect is sent into an empty pipe."""
        if self._deaths.has_any and any(self._deaths.of(request) for request in in_pipe):
            return None
        if self._suspects:
            return None if in_pipe else _next_open(self._suspects)
        for kind in self._limits:
            if self._has_room(kind, in_pipe) and (request := _next_open(self._waiting[kind])):
                return request
        return None

    def _has_room(self, kind: int, in_pipe: Collection[EmbeddingRequest]) -> bool:
        limit, count = self._limits[kind], sum(request.kind == kind for request in in_pipe)
        if kind == frames.PASSAGE:
            chars = sum(len(request.text) for request in in_pipe)
            if count >= limit * FEW_PASSAGES_SHARE and chars > MAX_CHARS_IN_PIPE:
                return False
            self._is_refilling = count < limit and (self._is_refilling or count <= limit // 2)
            return self._is_refilling
        return count < limit

    def drain(self) -> list[EmbeddingRequest]:
        """Remove and return all requests that wait."""
        queues = (*self._waiting.values(), self._suspects)
        return [queue.get() for queue in queues for _ in range(len(queue))]


def _next_open(queue: FairQueue[EmbeddingRequest]) -> EmbeddingRequest | None:
    """Remove and return the next request that a caller still waits for."""
    while len(queue):
        request = queue.get()
        if not request.answer.done():
            return request
    return None
