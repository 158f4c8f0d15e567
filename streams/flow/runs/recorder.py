"""Run records: what is noted of a request while it runs, which runs are recorded, and the record of each.

Enters: a record of a request, then its message, its answer or its error. Leaves: `run.v1`, of failed runs always, of
the others a share that is decided by their identity, so that a redelivered request is decided on alike. Guaranteed: no
failure here reaches the request.
"""

import asyncio
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import Context
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeVar
from zlib import crc32

import structlog
from modestream_client.runs import Pipeline, Run, RunFailure, RunPart

from agents.ports.clock import Clock, ModelCall, RunTimer, current_run, step
from agents.ports.models import LanguageModel
from schemas.failures import ModelMissing, Rejected, Unavailable
from schemas.messages.records import Outgoing, Record
from schemas.messages.replies import SuccessReply
from schemas.messages.turns import TurnAccepted
from schemas.models.language import AnswerT, Chat, ChatAnswer, Heard, ModelAnswer, OnText, Prompt, Unanswerable
from schemas.state.memories import Memory
from streams.flow.publisher import Publisher
from streams.flow.runs.record import (
    has_failed_model,
    key_of_unreadable,
    part_and_kind,
    request_of,
    revision_of,
    short_input,
    short_outcome,
    short_scope,
    times_of,
)
from streams.observability.metrics import Meters
from streams.topics import Topics
from streams.wire.partitioning import boundary_in

RUN_HEADER = "run"
"""A request with this header, `1`, is recorded whatever the share."""

MAX_MESSAGE_CHARS = 500
"""Characters of an error's message, where a deployment allows texts."""

CurrentRevision = Callable[[], tuple[int, str]]
"""Returns number and hash of the pipelines' revision that is in force."""

MAX_UNWRITTEN = 1000
"""Maximum run records that wait for Kafka, about 2 MB."""

FIRST_STEPS: dict[Pipeline, str] = {
    "memorize": "memorize.ingest",
    "retrieve": "retrieve.receive",
    "evolve": "evolve.receive",
}
"""The step before a request's own work: its record is read, checked and authorised."""

log = structlog.get_logger()


class RunUnderWay:
    """One run. `timer` is to be current while its code runs."""

    __slots__ = ("_ending", "message", "pipeline", "record", "revision", "timer")

    def __init__(self, ending: "RunRecorder", pipeline: Pipeline, record: Record, revision: tuple[int, str]) -> None:
        self._ending = ending
        self.pipeline: Pipeline = pipeline
        self.record = record
        self.revision = revision
        self.message: Any = None
        """The decoded message; None until then."""
        self.timer = RunTimer()

    def receiving(self) -> AbstractContextManager[None]:
        return step(FIRST_STEPS[self.pipeline])

    def note_message(self, message: Any) -> None:
        self.message = message

    def answered(self, answer: SuccessReply | None) -> None:
        """End the run. One without an answer goes on elsewhere, or is past its deadline."""
        if answer is not None:
            self._ending.end(self, answer)
        elif self.pipeline == "retrieve":
            self.failed("expired")

    def refused(self, error: Rejected, *, is_dead_letter: bool) -> None:
        """End the run by an error of its request."""
        self._ending.fail(self, error.dead_letter_code, error, is_dead_letter=is_dead_letter)

    def failed(self, code: str) -> None:
        """End the run by something that is answered by no error."""
        self._ending.fail(self, code, is_dead_letter=False)


class NoRun:
    """The run of a record without one; notes nothing."""

    timer: AbstractContextManager[None] = nullcontext()

    def receiving(self) -> AbstractContextManager[None]:
        return self.timer

    def note_message(self, message: Any) -> None:
        """Note nothing."""

    def answered(self, answer: SuccessReply | None) -> None:
        """Note nothing."""

    def refused(self, error: Rejected, *, is_dead_letter: bool) -> None:
        """Note nothing."""

    def failed(self, code: str) -> None:
        """Note nothing."""


RunNotes = RunUnderWay | NoRun

NO_RUN = NoRun()


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`sample` is the share of successful runs that is recorded, 0..1; `texts` allows texts in the records."""

    sample: float = 0.0
    texts: bool = False


class RunRecorder:
    def __init__(
        self,
        write: Callable[[Outgoing], None],
        topics: Topics,
        clock: Clock,
        options: RunOptions | None = None,
        current_revision: CurrentRevision = lambda: (0, ""),
        boundary_of: Callable[[Record], str] = boundary_in,
    ) -> None:
        """`write` writes a record in the background; `boundary_of` reads the boundary of one that was refused."""
        self.options = options or RunOptions()
        self._write = write
        self._topic = topics.runs
        self._asked = topics.asked
        self.clock = clock
        self.current_revision = current_revision
        self._boundary_of = boundary_of
        self._pipelines: dict[str, Pipeline] = {
            topics.turns: "memorize",
            topics.retrieve: "retrieve",
            topics.asked: "retrieve",
            topics.consolidate: "evolve",
        }

    def begin(self, record: Record) -> RunNotes:
        """Begin the run of a record, if its topic has a pipeline."""
        pipeline = self._pipelines.get(record.topic)
        return NO_RUN if pipeline is None else RunUnderWay(self, pipeline, record, self.current_revision())

    def is_sampled(self, identity: str) -> bool:
        sample = self.options.sample
        return sample > 0 and crc32(identity.encode()) < sample * 2**32

    def end(self, run: RunUnderWay, answer: SuccessReply) -> None:
        """Write the record of an answered run, if it is one of the share, was asked for, or a model failed in it."""
        record = run.record
        # The later parts of a turn's run know its memory, and not its record.
        identity = _memory_id(answer) or f"{record.topic}-{record.partition}-{record.offset}"
        if self.is_sampled(identity) or record.header(RUN_HEADER) == b"1" or has_failed_model(run.timer):
            self._record(run, answer, None)

    def fail(self, run: RunUnderWay, code: str, refused: Rejected | None = None, *, is_dead_letter: bool) -> None:
        """Write the record of a failed run."""
        message = refused.message[:MAX_MESSAGE_CHARS] if refused is not None and self.options.texts else None
        field = None if refused is None else refused.field
        self._record(run, None, RunFailure(code=code, field=field, is_dead_letter=is_dead_letter, message=message))

    def publish(self, run: Run, key: bytes | None, partition: int) -> None:
        """Write a record, to a partition where it has no key."""
        value = run.model_dump_json(by_alias=True, exclude_none=True).encode()
        self._write(Outgoing(self._topic, key, value, partition=partition if key is None else None))

    def _record(self, run: RunUnderWay, answer: SuccessReply | None, failure: RunFailure | None) -> None:
        record, message = run.record, run.message
        part, kind = part_and_kind(run.pipeline, message)
        if part is None:
            return
        # Offsets of two topics of a pipeline may be the same.
        name = "answer" if record.topic == self._asked else run.pipeline
        try:
            made = Run(
                run_id=f"{name}-{record.partition}-{record.offset}",
                pipeline=run.pipeline,
                part=part,
                kind=kind,
                scope={} if message is None else short_scope(message),
                memory_id=None if answer is None else _memory_id(answer),
                revision=revision_of(run.revision),
                request=request_of(record),
                input=short_input(message, texts=self.options.texts),
                warnings=() if answer is None else tuple(warning.code for warning in answer.warnings),
                outcome=None if answer is None else short_outcome(answer.result, texts=self.options.texts),
                failure=failure,
                **times_of(run.timer, self.clock.now()),
            )
            key = (
                key_of_unreadable(record, self._boundary_of(record))
                if message is None
                else message.scope.boundary.encode()
            )
            self.publish(made, key, record.partition)
        except Exception:
            log.exception("a run could not be recorded", topic=record.topic, offset=record.offset)


def _memory_id(answer: SuccessReply) -> str | None:
    return answer.result.memory_id if isinstance(answer.result, TurnAccepted) else None


class RunWriter:
    """Writes run records in the background; belongs to one event loop.

    Guaranteed: no caller waits for it; records that Kafka has not taken yet are bounded, the others are dropped and
    counted.
    """

    def __init__(self, publisher: Publisher, meters: Meters, limit: int = MAX_UNWRITTEN) -> None:
        self._publisher = publisher
        self._meters = meters
        self._limit = limit
        self._writing: set[asyncio.Task[None]] = set()

    def write(self, out: Outgoing) -> None:
        """Write a record in the background, or drop it."""
        if len(self._writing) >= self._limit:
            self._meters.run_dropped()
            return
        # Of no request: it would keep the request's context until Kafka is back.
        task = asyncio.get_running_loop().create_task(self._write(out), context=Context())
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, out: Outgoing) -> None:
        try:
            await (await self._publisher.send(out))
        except Exception as problem:
            self._meters.run_dropped()
            log.warning("a run record was not written", problem=repr(problem))


# Later parts of a turn's run: its vector, a language model's answer, what is derived. Each is a run of its own.
#
# They are linked by the id of the memory, and recorded where the turn's run is one of the share, or where they fail.


class PartUnderWay:
    """A part. `timer` is to be current while its code runs; `outcome` has ids and counts.

    `job_id` is the job that repeats the part of a turn.
    """

    __slots__ = ("job_id", "outcome", "timer")

    def __init__(self, job_id: str | None = None) -> None:
        self.job_id = job_id
        self.timer = RunTimer()
        self.outcome: Mapping[str, Any] = {}


@contextmanager
def timed_part(
    runs: RunRecorder | None, part: RunPart, memory: Memory, partition: int, job_id: str | None = None
) -> Iterator[PartUnderWay]:
    """Time a part, and record it at the end of the block; an exception is its failure.

    One that a job repeats has a run of its own beside the first.
    """
    under_way = PartUnderWay(job_id)
    try:
        with under_way.timer:
            yield under_way
    except Exception as problem:
        end_part(runs, part, memory, partition, under_way, _code_of(problem))
        raise
    end_part(runs, part, memory, partition, under_way)


def end_part(
    runs: RunRecorder | None,
    part: RunPart,
    memory: Memory,
    partition: int,
    under_way: PartUnderWay,
    failure: str | None = None,
) -> None:
    """Record a part that ends now, if it is one of the share, failed, or a model failed in it."""
    if runs is None:
        return
    is_failed = failure is not None or has_failed_model(under_way.timer)
    if not is_failed and not runs.is_sampled(memory.memory_id):
        return
    try:
        run = Run(
            run_id="-".join(filter(None, (part, memory.memory_id, str(memory.latest), under_way.job_id))),
            pipeline="memorize",
            part=part,
            scope=dict(memory.scope),
            memory_id=memory.memory_id,
            revision=revision_of(runs.current_revision()),
            outcome=None if failure is not None else {"version": memory.version, **under_way.outcome},
            failure=None if failure is None else RunFailure(code=failure),
            **times_of(under_way.timer, runs.clock.now()),
        )
        runs.publish(run, memory.boundary.encode(), partition)
    except Exception:
        log.exception("a part of a run could not be recorded", part=part, partition=partition)


def _code_of(problem: Exception) -> str:
    if isinstance(problem, Rejected):
        return problem.dead_letter_code
    return "unavailable" if isinstance(problem, Unavailable | ModelMissing) else "internal"


AnsweredT = TypeVar("AnsweredT", ModelAnswer[Any], ChatAnswer)


# Noted of a call are the step's name in the pipelines, profile, time, tokens, cost, and why it failed.
class TimedModels:
    """Implements `agents.ports.models.LanguageModel` over other models."""

    def __init__(self, models: LanguageModel, step: str, profile: str | None = None) -> None:
        """`step` is its name in the pipelines; `profile` the one that they have chosen for it, None for none."""
        self._models = models
        self._step = step
        self._profile = profile

    async def ask(
        self, step: str, role: str, prompt: Prompt, answer: type[AnswerT], profile: str | None = None
    ) -> ModelAnswer[AnswerT]:
        """Ask, and note the call; one that its caller gave up has the failure `timeout`."""
        chosen = profile or self._profile
        return await self._noted(self._models.ask(step, role, prompt, answer, chosen), chosen)

    async def continue_chat(
        self, step: str, role: str, chat: Chat, profile: str | None = None, on_text: OnText | None = None
    ) -> ChatAnswer:
        chosen = profile or self._profile
        return await self._noted(self._models.continue_chat(step, role, chat, chosen, on_text), chosen)

    async def _noted(self, asking: Awaitable[AnsweredT], chosen: str | None) -> AnsweredT:
        run = current_run()
        if run is None:
            return await asking
        began = perf_counter()
        try:
            answered = await asking
        except (Unavailable, Unanswerable, CancelledError) as problem:
            run.add_model(ModelCall(self._step, began, perf_counter(), chosen, failure=_failure(problem)))
            raise
        tokens = answered.tokens_in, answered.tokens_out
        run.add_model(ModelCall(self._step, began, perf_counter(), answered.profile, *tokens, answered.cost_usd))
        return answered

    async def transcribe(self, step: str, role: str, sound: bytes, name: str) -> Sequence[Heard]:
        """Return what is said in a sound; files are read outside of any run, so no call is noted."""
        return await self._models.transcribe(step, role, sound, name)

    def has_role(self, role: str) -> bool:
        """True if a profile is set for this role itself."""
        return self._models.has_role(role)

    def available(self, step: str, role: str, profile: str | None = None) -> bool:
        """True if a call of this step may be made now."""
        return self._models.available(step, role, profile or self._profile)

    async def until_available(self, step: str, role: str, profile: str | None = None) -> None:
        """Wait until `available`."""
        await self._models.until_available(step, role, profile or self._profile)

    def status(self) -> Mapping[str, Mapping[str, Any]]:
        return self._models.status()

    async def close(self) -> None:
        await self._models.close()


def _failure(problem: BaseException) -> str:
    if isinstance(problem, CancelledError):
        return "timeout"
    return "unanswerable" if isinstance(problem, Unanswerable) else "unavailable"
