"""A custom step, and what it may do beside returning its part: search the memories of a user, and write turns.

Enters: the state of a record. Leaves: the part that the step produces, or a warning. Guaranteed: a step that raises,
hangs or returns what it did not declare costs its record an error or a warning, and no other one anything. A search
leaves neither the user and project of the record nor its bounds; what a step writes is a turn like any other, with an
id by which the same record writes it once.
"""

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import structlog
from modestream_client.hits import Hit

from agents.ports.clock import step as timed_step
from agents.ports.pipelines import CustomStep, State
from agents.rules.pipelines.contract import CustomStepConfig, StepContract, is_private, on_failure_of
from agents.rules.pipelines.validation import WrongProduct, product_of
from schemas.failures import Rejected, Unavailable
from schemas.messages.replies import ReplyWarning
from schemas.state.pipelines import PlacedStep

log = structlog.get_logger()

MAX_SEARCHES, MAX_FOUND = 3, 20
"""Searches of a step for one record, and hits of each."""

MAX_WRITTEN, MAX_WRITTEN_CHARS = 10, 8_000
"""Turns that a step writes for one record, and characters of each."""

MADE_BY = "made_by"
"""The field of a turn's metadata that names the step that wrote it: no step writes because of such a turn."""

RETRY_PAUSE_S = 0.1
"""Before the first repetition; twice as long before each further one."""


@dataclass(slots=True)
class StepUnderWay:
    """A custom step that handles a record: what it is about, and what it has done so far."""

    step_id: str
    scope: Mapping[str, Any]
    record_id: str
    asks_model: bool
    made_by: str | None = None
    is_private: bool = False
    """It was given, or has found, something private: what it writes is private, too."""
    searches: int = 0
    written: int = 0
    has_ended: bool = False
    """Tasks that began within its call have its context for as long as they live."""


_under_way: ContextVar[StepUnderWay | None] = ContextVar("custom_step", default=None)


_writes_nothing: ContextVar[bool] = ContextVar("writes_nothing", default=False)


@contextmanager
def writing_nothing() -> Iterator[None]:
    """Keep what custom steps write within the block from being published."""
    token = _writes_nothing.set(True)
    try:
        yield
    finally:
        _writes_nothing.reset(token)


def step_under_way() -> StepUnderWay | None:
    """Return the custom step in whose call this code runs, if it does."""
    step = _under_way.get()
    return None if step is None or step.has_ended else step


Searching = Callable[[Mapping[str, Any], str, int, str | Sequence[str] | None], Awaitable[list[Hit]]]
"""Searches a scope: the query, the number of hits, and the modes, None for those of the project."""

Publishing = Callable[[Mapping[str, Any], str], Awaitable[None]]
"""Publishes the fields of a turn on behalf of a step; returns when it is in the log."""


class StepAccess:
    """Searches and writes of custom steps, for the record that each handles. One in a worker."""

    def __init__(self) -> None:
        self.searching: Searching | None = None
        self.publishing: Publishing | None = None

    async def search(self, query: str, top_k: int = 10, mode: str | Sequence[str] | None = None) -> list[Hit]:
        """Return the memories of the record's user and project that answer a query, best first.

        None that is private for a step that asks a model. Raises ValueError beyond the bounds of a step, Unavailable
        before the worker has taken its partitions.
        """
        step = _of_step()
        step.searches += 1
        if step.searches > MAX_SEARCHES or not 1 <= top_k <= MAX_FOUND:
            raise ValueError(f"a step searches {MAX_SEARCHES} times for at most {MAX_FOUND} hits")
        if self.searching is None:
            raise Unavailable("the worker does not search yet")
        hits = await self.searching(step.scope, query, top_k, mode)
        if step.asks_model:
            return [hit for hit in hits if not hit.private]
        step.is_private = step.is_private or any(hit.private for hit in hits)
        return hits

    async def remember(
        self, text: str, *, metadata: Mapping[str, Any] | None = None, role: str = "assistant", mode: str | None = None
    ) -> str | None:
        """Write a turn in the record's scope; return its id, or None because of a turn that a step has written.

        Raises ValueError beyond the bounds of a step, Unavailable.
        """
        step = _of_step()
        if step.made_by is not None:
            return None
        step.written += 1
        if step.written > MAX_WRITTEN or not 1 <= len(text) <= MAX_WRITTEN_CHARS:
            raise ValueError(f"a step writes {MAX_WRITTEN} turns of at most {MAX_WRITTEN_CHARS} characters")
        if _writes_nothing.get():
            return f"{step.step_id}:{step.written}"
        if self.publishing is None:
            raise Unavailable("the worker does not write yet")
        digest = hashlib.sha256(f"{step.step_id}:{step.record_id}:{step.written}".encode()).hexdigest()
        turn_id = f"step-{digest[:32]}"
        fields: dict[str, Any] = {
            "scope": dict(step.scope),
            "conversation_id": step.step_id,
            "turn_id": turn_id,
            "role": role,
            "content": text,
            "metadata": {**(metadata or {}), MADE_BY: step.step_id},
            "private": step.is_private,
        }
        await self.publishing(fields if mode is None else {**fields, "mode": mode}, step.step_id)
        return turn_id


def _of_step() -> StepUnderWay:
    if (step := step_under_way()) is None:
        raise RuntimeError("only for the record that a step handles, in its coroutine")
    return step


@dataclass(frozen=True, slots=True)
class RunnableStep:
    placed: PlacedStep
    contract: StepContract
    config: CustomStepConfig
    call: CustomStep
    room: asyncio.Semaphore | None = field(init=False)

    def __post_init__(self) -> None:
        most = self.config.concurrency
        object.__setattr__(self, "room", None if most is None else asyncio.Semaphore(most))

    async def run(self, produces: str, state: State) -> None:
        """Put what the step makes of a part of the state in the place of that part, or a warning beside it."""
        asks_model = "language_model" in self.contract.capabilities
        if asks_model and is_private(state):
            return
        about = _about(state, self.contract.step_id, asks_model=asks_model)
        about.is_private = is_private(state)
        token = _under_way.set(about)
        try:
            with timed_step(self.contract.step_id):
                state[produces] = product_of(await self._returned(state), produces, state)
        except BaseException as problem:
            if not isinstance(problem, Exception) and _is_cancelled(problem):
                raise
            # Also an exit, or a cancellation that only the step has raised: no step ends the worker. Messages of
            # exceptions may have texts of memories: the log of the worker names the step and the kind.
            log.warning("custom step failed", step=self.contract.step_id, problem=type(problem).__name__)
            # The warning about a step that is skipped. Raises Rejected for one that must not be.
            if isinstance(problem, TimeoutError):
                reason = f"it did not end within {self.config.timeout_s} s"
            else:
                # What a product has wrong is ours to say; other messages may have texts of memories.
                reason = str(problem) if isinstance(problem, WrongProduct) else type(problem).__name__
            message = f"step {self.contract.step_id} failed: {reason}"
            if on_failure_of(self.config, produces) == "reject":
                raise Rejected("internal", message) from problem
            state.setdefault("warnings", []).append(ReplyWarning("step_failed", message))
        finally:
            about.has_ended = True
            _under_way.reset(token)

    async def _returned(self, state: State) -> Any:
        """Run the step, with its allowed number of attempts; return its result."""
        given = {name: state[name] for name in self.contract.requires}
        async with self.room or nullcontext():
            for attempt in range(self.config.retries):
                try:
                    return await self._attempt(given)
                except Exception:
                    await asyncio.sleep(RETRY_PAUSE_S * 2**attempt)
            return await self._attempt(given)

    async def _attempt(self, given: Mapping[str, Any]) -> Any:
        step = _of_step()
        step.searches = step.written = 0
        async with asyncio.timeout(self.config.timeout_s):
            if inspect.iscoroutinefunction(self.call) or inspect.iscoroutinefunction(type(self.call).__call__):
                return await self.call(**given)
            return await asyncio.to_thread(self.call, **given)


def _about(state: State, step_id: str, *, asks_model: bool) -> StepUnderWay:
    """Return the subject of a step: the scope of its state, an id of its record, and the step that made it."""
    turn, memory, request = state.get("turn"), state.get("memory"), state.get("request")
    if turn is not None:
        record_id = f"{turn.conversation_id}:{turn.turn_id}"
        return StepUnderWay(step_id, turn.scope.model_dump(), record_id, asks_model, turn.metadata.get(MADE_BY))
    if memory is not None:
        record_id = f"{memory.memory_id}:{memory.latest}"
        return StepUnderWay(step_id, memory.scope, record_id, asks_model, memory.metadata.get(MADE_BY))
    if request is not None:
        fields = request.scope.fields().items()
        scope = {
            name: "*" if values is None else values[0] if len(values) == 1 else list(values) for name, values in fields
        }
        return StepUnderWay(step_id, scope, "", asks_model)
    return StepUnderWay(step_id, state.get("scope", {}), state.get("run", ""), asks_model)


def _is_cancelled(problem: BaseException) -> bool:
    """True for the cancellation of the task that runs the step, or its end with the event loop."""
    task = asyncio.current_task()
    return isinstance(problem, GeneratorExit) or (
        isinstance(problem, asyncio.CancelledError) and (task is None or task.cancelling() > 0)
    )
