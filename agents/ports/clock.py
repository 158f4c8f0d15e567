"""Time: the current one, and how long the steps of a run take.

Agents read the time through `Clock`, rules get it as an argument. `with step("retrieve.recall"):` around a stage, and
the calls of language models, are noted in the timer of the run that the current task handles.
"""

from contextvars import ContextVar, Token
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter
from typing import Optional, Protocol


class Clock(Protocol):
    """Reads the time."""

    def now(self) -> datetime:
        """Return the current time in UTC."""


class SteadyClock(Clock, Protocol):
    """Reads the wall clock, and a monotonic clock."""

    def steady_s(self) -> float:
        """Return seconds that go on evenly, also while the machine is suspended."""


MAX_STEPS = 100
"""Steps of one run that are kept, and calls of models: a consolidation of many modes has more."""

_current: ContextVar[Optional["RunTimer"]] = ContextVar("run_timer", default=None)


TimedStep = tuple[str, float, float]
"""A step with its begin and its end, as times of `time.perf_counter`."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call of a language model; times as of a step. `failure` says why there is no answer."""

    step: str
    began: float
    ended: float
    profile: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    failure: str | None = None


class RunTimer:
    """The steps and model calls of one run. Current within `with`, any number of times one after another."""

    __slots__ = ("_token", "began", "models", "omitted", "steps")

    def __init__(self) -> None:
        self.began = perf_counter()
        self.steps: list[TimedStep] = []
        self.models: list[ModelCall] = []
        self.omitted = 0
        """Steps and calls beyond `MAX_STEPS`."""

    def __enter__(self) -> None:
        self._token: Token[RunTimer | None] = _current.set(self)

    def __exit__(self, *_: object) -> None:
        """Make the previous timer current again."""
        _current.reset(self._token)

    def add_step(self, name: str, began: float) -> None:
        """Note a step that ends now."""
        if len(self.steps) < MAX_STEPS:
            self.steps.append((name, began, perf_counter()))
        else:
            self.omitted += 1

    def add_model(self, call: ModelCall) -> None:
        if len(self.models) < MAX_STEPS:
            self.models.append(call)
        else:
            self.omitted += 1


class _Off:
    """A mark outside of a run."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


class _Mark:
    """A mark within a run: notes the step also if it ends by an exception."""

    __slots__ = ("_began", "_name", "_timer")

    def __init__(self, timer: RunTimer, name: str) -> None:
        self._timer = timer
        self._name = name

    def __enter__(self) -> None:
        self._began = perf_counter()

    def __exit__(self, *_: object) -> None:
        self._timer.add_step(self._name, self._began)


_OFF = _Off()


def step(name: str) -> _Off | _Mark:
    """Time a step of the current run, `<pipeline>.<step>`, within `with`; nothing outside of a run."""
    # Outside of a run a mark costs 0.2 us.
    timer = _current.get()
    return _OFF if timer is None else _Mark(timer, name)


def current_run() -> RunTimer | None:
    """Return the timer of the run that the current task handles."""
    return _current.get()
