"""The worker's session with one run of an embedder's process, and its watchdog.

Enters: texts by user. Leaves: their vectors. Guaranteed: a process that is silent or takes too long for a text is
killed; when it has ended, every caller gets `Unavailable`. Time is counted in ticks of the watchdog, so that a worker
that was itself paused does not kill a healthy process.
"""

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import structlog

from schemas.failures import ModelMissing, Unavailable
from schemas.models.vectors import Encoded
from schemas.state.modes import Fingerprint
from streams.adapters.embedding.process import frames
from streams.adapters.embedding.process.embedder_process import EmbedderProcess
from streams.fair_queue import FairQueue

log = structlog.get_logger()

MAX_DEATHS = 3
"""Deaths of the process over one text until the text is refused: an outage of the machine kills at random."""

MAX_SUSPECTS = 1000
"""Texts with counted deaths. Each death adds at most those in the pipe."""

MAX_CHARS_IN_PIPE = 4000
"""Characters of passages in the pipe above which only a few are sent ahead: others would wait long behind them."""

FEW_PASSAGES_SHARE = 3 / 8
"""Share of the passages in the pipe that are sent ahead whatever their length."""

MAX_QUERIES_IN_PIPE = 2
"""Queries in the pipe: the process answers one at a time; the second one saves it the wait for the worker."""


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
        return frames.request_key(frames.encode_request(self.prefix, self.text))


class TextDeaths:
    """Counts how often the process died over a text; the oldest counts are dropped first."""

    def __init__(self) -> None:
        self._deaths: OrderedDict[bytes, int] = OrderedDict()

    def of(self, request: EmbeddingRequest) -> int:
        return self._deaths.get(request.key, 0) if self._deaths else 0

    def add(self, in_pipe: Collection[EmbeddingRequest], under_way: Collection[bytes]) -> None:
        """Count a death. Texts that ran together become suspects; only a text that ran alone is counted again.

        `under_way` has the keys of the texts in the process, those of other workers included.
        """
        for request in in_pipe:
            if request.key in under_way and (len(under_way) == 1 or not self.of(request)):
                self._deaths[request.key] = self.of(request) + 1
        while len(self._deaths) > MAX_SUSPECTS:
            self._deaths.popitem(last=False)

    def clear(self, request: EmbeddingRequest) -> None:
        if self._deaths:
            self._deaths.pop(request.key, None)


class TextRefusedError(RuntimeError):
    """The process ended or hung over this text too often."""


class RequestQueue:
    """Requests waiting for one embedder's process: queries first, each kind round robin by user.

    Guaranteed: few requests are in the pipe, so that a flood of one user waits here, and another user's text behind at
    most one of the flood for each own text; a text that was in the process when it died is sent alone, and refused
    after `MAX_DEATHS` deaths.
    """

    def __init__(self, passages_in_pipe: int, deaths: TextDeaths) -> None:
        self._limits = {frames.QUERY: MAX_QUERIES_IN_PIPE, frames.PASSAGE: passages_in_pipe}
        self._waiting: dict[int, FairQueue[EmbeddingRequest]] = {kind: FairQueue() for kind in self._limits}
        self._suspects: FairQueue[EmbeddingRequest] = FairQueue()
        self._deaths = deaths
        self._is_refilling = True
        """False from when the pipe is full of passages until half of them are answered, to batch the writes."""

    def put(self, boundary: str, request: EmbeddingRequest) -> None:
        queue = self._suspects if self._deaths.of(request) else self._waiting[request.kind]
        queue.put(boundary, request)

    def next(self, in_pipe: Collection[EmbeddingRequest]) -> EmbeddingRequest | None:
        """Return the next request; None without one, or without room. A suspect is sent into an empty pipe."""
        if any(map(self._deaths.of, in_pipe)):
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
        queues = (*self._waiting.values(), self._suspects)
        return [queue.get() for queue in queues for _ in range(len(queue))]


def _next_open(queue: FairQueue[EmbeddingRequest]) -> EmbeddingRequest | None:
    """Remove and return the next request whose caller still waits."""
    while len(queue):
        request = queue.get()
        if not request.answer.done():
            return request
    return None


@dataclass(frozen=True, slots=True)
class HangLimits:
    """Limits of a silent process: in seconds where the name ends in `_s`, else in ticks."""

    tick_s: float = 1.0
    stuck: int = 4
    """Silence after which the process is reported as stuck, and refuses texts at once."""
    silent: int = 60
    """Silence after which it is killed. A query of the preset `code` may have 8,192 tokens: tens of seconds."""
    passage: int = 300
    """Limit of one text: at most 8,192 characters, with few others before it, perhaps of a slow model."""
    query_s: float = 4.0
    """Seconds of a query in all; then the question is answered by words."""
    load_s: float = 300.0
    """Maximum seconds for loading a model from local files; the largest preset takes 10 s."""
    export_s: float = 1800.0
    """Seconds of loading with an export, on a machine that is busy with other things."""


class EmbedderChild:
    """One run of the embedder's process."""

    def __init__(
        self,
        process: EmbedderProcess,
        passages_in_pipe: int = 6,
        deaths: TextDeaths | None = None,
        limits: HangLimits | None = None,
        on_death: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_death` is called when the process ends by itself or is killed by the watchdog."""
        self._process = process
        self._numbers = itertools.count(1)
        self._deaths = deaths or TextDeaths()
        self._limits = limits or HangLimits()
        self._on_death = on_death
        self._queue = RequestQueue(passages_in_pipe, self._deaths)
        self._in_pipe: dict[int, EmbeddingRequest] = {}
        self._unanswered_ticks: int | None = None
        self._watching: asyncio.Task[None] | None = None
        self._writing: asyncio.WriteTransport | None = None
        self._closed: asyncio.Future[None] | None = None
        """Done when the process has closed its output; None before it is read."""
        self._opening = asyncio.Lock()
        self.ended = False
        self.responses = 0

    @property
    def stuck(self) -> bool:
        """True if the process has been silent for a few seconds."""
        return self._unanswered_ticks is not None and self._unanswered_ticks >= self._limits.stuck

    def hello(self) -> Fingerprint:
        """Read the first frame. Blocks; call it once, before any request.

        Raises ModelMissing, with the reason, if the child could not load its model.
        """
        head = self._process.read(frames.FRAME_HEADER.size)
        if len(head) < frames.FRAME_HEADER.size:
            raise ModelMissing("the embedder's process ended while it loaded its model; see its log")
        content = self._process.read(frames.decode_header(head).length)
        if frames.decode_header(head).kind == frames.ERROR:
            raise ModelMissing(content.decode(errors="replace"))
        return Fingerprint.model_validate_json(content)

    async def loaded(self, within_s: float) -> Fingerprint:
        """As `hello`, in its own thread, as it may take minutes. Raises ModelMissing after `within_s`.

        Cancellation abandons the process; the timeout kills it.
        """
        thread = ThreadPoolExecutor(1, thread_name_prefix="embedder-hello")
        try:
            async with asyncio.timeout(within_s):
                return await asyncio.get_running_loop().run_in_executor(thread, self.hello)
        except (asyncio.CancelledError, TimeoutError) as end:
            if isinstance(end, TimeoutError):
                self._process.kill()
            self._process.abandon()
            thread.shutdown()
            if isinstance(end, TimeoutError):
                raise ModelMissing(f"the embedder's process did not load its model within {within_s:g} s") from end
            raise
        finally:
            thread.shutdown(wait=False)

    async def ask(self, kind: int, prefix: str, text: str, boundary: str) -> Encoded:
        """Embed one text, queued by the user's boundary.

        Raises Unavailable if the process ends first, RuntimeError if the model fails on the text, TextRefusedError
        if it died over it.
        """
        async with self._opening:
            if self._writing is None and not self.ended:
                self._closed = asyncio.get_running_loop().create_future()
                reader = frames.FrameReader(self._resolve, self._end_of_output, self._send)
                self._writing = await self._process.connect(reader)
                self._watching = asyncio.create_task(self._watch())
        if self.ended or self._writing is None:
            raise Unavailable("the embedder's process has ended and is being restarted")
        if self.stuck:
            raise Unavailable("the embedder's process does not answer")
        answer: asyncio.Future[Encoded] = asyncio.get_running_loop().create_future()
        request = EmbeddingRequest(kind, prefix, text, answer)
        if self._deaths.of(request) >= MAX_DEATHS:
            raise TextRefusedError(f"the embedder's process ended or hung {MAX_DEATHS} times over this text")
        self._queue.put(boundary, request)
        self._send()
        return await answer

    async def end(self) -> None:
        """Close the connection, which ends the process unless others use it."""
        self.ended = True
        if self._watching is not None:
            self._watching.cancel()
        await self._process.end(self._writing)
        if self._closed is not None:
            await self._closed

    def _send(self) -> None:
        """Write requests to the pipe as far as there is room, all in one write."""
        sent = []
        while self._writing is not None and (request := self._queue.next(self._in_pipe.values())):
            number = next(self._numbers) % (2**32 - 1) + 1
            self._in_pipe[number] = request
            kind = request.kind | (frames.ALONE if self._deaths.of(request) else 0)
            sent.append(frames.encode_frame(number, kind, frames.encode_request(request.prefix, request.text)))
        if sent and self._writing is not None:
            self._writing.write(b"".join(sent))

    async def _watch(self) -> None:
        """Ask for a sign of life at every tick; kill the process when it is overdue."""
        while not self.ended:
            await asyncio.sleep(self._limits.tick_s)
            if self._unanswered_ticks is not None:
                self._unanswered_ticks += 1
            for request in self._in_pipe.values():
                request.waited += 1
            longest = max((request.waited for request in self._in_pipe.values()), default=0)
            if (self._unanswered_ticks or 0) >= self._limits.silent or longest >= self._limits.passage:
                log.warning("embedder process hangs, killing it", pid=self._process.pid)
                self._process.kill()
                return
            if self._unanswered_ticks is None and self._writing is not None:
                self._unanswered_ticks = 0
                self._writing.write(frames.encode_frame(0, frames.PING, b""))

    def _end_of_output(self) -> None:
        is_death, self.ended = not self.ended, True
        if is_death:
            self._deaths.add(self._in_pipe.values(), self._process.under_way())
        for request in (*self._in_pipe.values(), *self._queue.drain()):
            if not request.answer.done():
                request.answer.set_exception(Unavailable("the embedder's process ended before it answered"))
        self._in_pipe.clear()
        if is_death:
            self._on_death()
        if self._closed is not None and not self._closed.done():
            self._closed.set_result(None)

    def _resolve(self, number: int, kind: int, content: bytes) -> None:
        self.responses += 1
        if kind == frames.PING:
            self._unanswered_ticks = None
            return
        request = self._in_pipe.pop(number)
        self._deaths.clear(request)
        if request.answer.done():
            return
        if kind == frames.ERROR:
            request.answer.set_exception(RuntimeError(content.decode(errors="replace")))
        else:
            request.answer.set_result(frames.decode_vectors(content))
