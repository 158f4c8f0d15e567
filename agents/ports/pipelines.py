"""The pipelines of a deployment: their revisions, the classes of custom steps, and what is in force."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from modestream_client.hits import Hit
from pydantic import BaseModel

from agents.ports.models import LanguageModel
from agents.rules.pipelines.contract import StepContract
from schemas.state.pipelines import PlacedStep, Revision, Topology


class Revisions(Protocol):
    """The accepted revisions, in the order of the topic `pipelines`, which decides between two edits at a time."""

    def current(self) -> Revision:
        """Return the revision that counts."""

    def find(self, number: int) -> Revision | None:
        """Return a revision by its number."""

    def latest(self, limit: int) -> Sequence[Revision]:
        """Return the last revisions, latest first."""

    def made_by(self, request: str) -> Revision | None:
        """Return the revision that a command has made; None if it has made none."""

    async def append(self, revision: Revision) -> bool:
        """Write a revision; True if it counts, False if another one with its number came first. Raises Unavailable."""


@dataclass(frozen=True, slots=True)
class StepPorts:
    """What a custom step gets beside its state, each if it has that capability; no broker and no table.

    `search(query, top_k=10, mode=None)` returns hits of the record's user and project; `remember(text, metadata=None,
    role="assistant", mode=None)` writes a turn in the record's scope. Both are for coroutines, and bounded.
    """

    language_model: LanguageModel | None = None
    search: Callable[..., Awaitable[list[Hit]]] | None = None
    remember: Callable[..., Awaitable[str | None]] | None = None


CustomStep = Callable[..., Any]
"""Called with the parts of the state that its class requires, by name; returns a mapping, or an awaitable of one.

One that is no coroutine function is called in a thread.
"""


class InstalledSteps(Protocol):
    """The classes of custom steps that the deployment has installed."""

    async def load(self, topology: Topology, limit_s: float, *, again: bool = True) -> None:
        """Import what a topology names, each module within a time limit; one that failed before only if `again`.

        Returns also where a module can't be imported: `contract` says why. Nothing that a module does, such as an
        exit, reaches the caller.
        """

    def contract(self, step: PlacedStep) -> StepContract:
        """Return the contract of a step's class, after `load`.

        Raises Rejected, rule `unknown_class` or `unlisted_package`, if there is no such class, or none is allowed.
        """

    def build(self, step: PlacedStep, config: BaseModel, ports: StepPorts) -> CustomStep:
        """Construct a step. Raises Rejected, rule `unknown_class`, if its constructor fails."""


class RunnablePipelines(Protocol):
    """The parts of the pipelines that this worker can run."""

    @property
    def current(self) -> "ActivePipelines":
        """Return those in force."""

    async def draft(self, topology: Topology) -> "ActivePipelines":
        """Return the pipelines of a topology. Raises Rejected, with the rule that is broken, if it can't run here."""

    async def describe(self, revision: Revision) -> dict[str, Any]:
        """Return a revision with its steps, as commands show it."""


class RequestComparison(Protocol):
    """Compares pipelines on the recorded requests of a user."""

    async def __call__(
        self, boundary: str, before: "ActivePipelines", after: "ActivePipelines", last: int
    ) -> dict[str, Any]:
        """Return the differences in the results of recent requests, without texts. Raises Unavailable."""


State = dict[str, Any]
"""The values that a pipeline's steps share for one turn, question or run, by the names in their contracts.

`warnings` report skipped custom steps.
"""

BuiltInStep = Callable[[State], Awaitable[State | None] | State | None]
"""Returns the parts of the state that it makes or changes."""


class ActivePipelines(Protocol):
    @property
    def number(self) -> int:
        """The number of the revision."""

    def is_on(self, step_id: str) -> bool:
        """True if a built-in step runs: it is neither switched off nor replaced."""

    def awaits(self, step_id: str) -> bool:
        """True if a built-in step is off only until the revision that counts, which has it, can run."""

    def config(self, step_id: str) -> BaseModel:
        """Return the configuration of a step."""

    def has_custom(self, place: str) -> bool:
        """True if custom steps run after, or instead of, this built-in step."""

    async def run(self, steps: Mapping[str, BuiltInStep | None], state: State) -> None:
        """Run the revision's steps on a state: these built-in ones as far as they are on, custom ones in between.

        `steps` are in the order of the pipeline; None has nothing to do here but the custom steps behind it. Each step
        is timed in the current run. Raises Rejected `internal` if a custom step fails that must not be skipped; one
        that may be skipped leaves the state, and a warning.
        """
