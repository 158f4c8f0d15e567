"""The pipelines of one revision, ready to run: configurations are parsed, and custom steps are constructed.

Enters: a revision and the installed classes. Leaves: settings of built-in steps, and what custom steps make of a state.
Guaranteed: a step that raises, hangs or returns what it did not declare costs its turn or question an error or a
warning, and no other one anything.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import TypeVar, cast

import structlog
from pydantic import BaseModel

from agents.ports import run_timer
from agents.ports.models import LanguageModel
from agents.ports.pipelines import BuiltInStep, InstalledSteps, State, StepPorts
from agents.rules.pipelines.built_in import BUILT_IN, custom_steps, steps_not_to_skip
from agents.rules.pipelines.contract import CustomStepConfig, refuse
from agents.rules.pipelines.validation import contract_of, read_config
from schemas.failures import Rejected
from schemas.state.pipelines import PlacedStep, Revision, Topology
from streams.flow.pipelines.custom_step import RunnableStep, StepAccess, step_under_way

log = structlog.get_logger()


ModelOf = Callable[[str], LanguageModel]
"""Returns the language models of the step with this name."""

Made = TypeVar("Made")


class RevisionPipelines:
    """Implements `agents.ports.pipelines.ActivePipelines` for one revision."""

    def __init__(
        self,
        revision: Revision,
        installed: InstalledSteps,
        model_of: ModelOf | None = None,
        access: StepAccess | None = None,
    ) -> None:
        """Construct the custom steps: code of the deployment, to be run `beside_event_loop`.

        Raises Rejected if the revision names a class that is not installed here.
        """
        self.revision = revision
        self.number = revision.number
        self._installed = installed
        self._model_of = model_of
        self._access = access or StepAccess()
        self._refused: Mapping[str, str] = {}
        self._awaited: frozenset[str] = frozenset()
        steps = revision.topology.steps()
        self._on = {placed.step_id for placed in steps if placed.enabled and placed.implementation is None}
        self._configs = {
            placed.step_id: read_config(placed, contract_of(placed, installed.contract)) for placed in steps
        }
        self._custom: dict[str, list[RunnableStep]] = {}
        for place, step in custom_steps(revision.topology):
            contract, config = self._installed.contract(step), self._configs[step.step_id]
            assert isinstance(config, CustomStepConfig)
            has_model = "language_model" in contract.capabilities
            model = self._model_of(step.step_id) if has_model and self._model_of is not None else None
            search = self._access.search if "vector_search" in contract.capabilities else None
            remember = self._access.remember if "writes" in contract.capabilities else None
            call = self._installed.build(step, config, StepPorts(model, search, remember))
            self._custom.setdefault(place, []).append(RunnableStep(step, contract, config, call))

    def is_on(self, step_id: str) -> bool:
        return step_id in self._on

    def config(self, step_id: str) -> BaseModel:
        return self._configs[step_id]

    def has_custom(self, place: str) -> bool:
        return place in self._custom or place in self._refused

    def awaits(self, step_id: str) -> bool:
        return step_id in self._awaited

    def instead_of(self, wanted: Topology, problem: str) -> "RevisionPipelines":
        """Return the same in place of a topology that can't run here, for this `problem`.

        Guaranteed: no language model gets a text that it would not get by that topology. Off is each step that is off
        there, and each that asks a model and is not there, is replaced there, or has another profile there. Nothing
        passes a place that lacks a custom step that must not be skipped: the worker would store, or show, what that
        step keeps out.
        """
        running = self.revision.topology
        built_in = {placed.step_id for placed in wanted.steps() if placed.enabled and placed.implementation is None}
        off = {placed.step_id for placed in wanted.steps() if not placed.enabled}
        other_model = {
            step
            for step, contract in BUILT_IN.items()
            if ("language_model" in contract.capabilities or "profile" in contract.config.model_fields)
            and (step not in built_in or _profile(step, running) != _profile(step, wanted))
        }
        there = [*custom_steps(wanted)]
        kept = {
            place: [
                custom_step
                for custom_step in steps
                if custom_step.placed.step_id not in off
                and ("language_model" not in custom_step.contract.capabilities or (place, custom_step.placed) in there)
            ]
            for place, steps in self._custom.items()
        }
        custom = {place: steps for place, steps in kept.items() if steps}
        on = self._on - off - other_model
        running_custom = {
            (place, step.placed.step_id, step.placed.implementation)
            for place, steps in custom.items()
            for step in steps
        }
        refused = {
            place: f"{placed.step_id} must not be skipped: {problem}"
            for place, placed in steps_not_to_skip(wanted)
            if (place, placed.step_id, placed.implementation) not in running_custom
        }
        less = copy(self)
        less._on, less._custom, less._awaited, less._refused = on, custom, frozenset(built_in - on), refused  # noqa: SLF001
        return less

    @property
    def refused_places(self) -> Mapping[str, str]:
        """The places that nothing passes, each with the reason."""
        return self._refused

    async def run(self, steps: Mapping[str, BuiltInStep | None], state: State) -> None:
        for place, built_in in steps.items():
            if built_in is not None and place in self._on:
                with run_timer.step(place):
                    made = built_in(state)
                    state.update((await made if inspect.isawaitable(made) else made) or {})
            if place in self._refused:
                raise Rejected("unavailable", self._refused[place])
            produces = BUILT_IN[place].opens or ""
            # What is not there, such as an answer that a model could not give, is not changed. A search by a custom
            # step runs none.
            if place in self._custom and state.get(produces) is not None and step_under_way() is None:
                for step in self._custom[place]:
                    await step.run(produces, state)

    def custom_steps(self, place: str) -> Sequence[PlacedStep]:
        """Return the custom steps of a place, with classes and configurations."""
        return [custom_step.placed for custom_step in self._custom.get(place, ())]


def _profile(step_id: str, topology: Topology) -> object:
    """Return the language model profile that a topology names for a step; None: the step's role chooses it."""
    step = topology.find(step_id)
    return None if step is None else step.config.get("profile")


async def beside_event_loop(make: Callable[[], Made], limit_s: float) -> Made:
    """Return what code of the deployment makes in a thread of its own, which ends with the process.

    Raises what it raises, and TimeoutError for code that goes on after `limit_s`. No thread of a pool: one that never
    returns would keep it from everything else.
    """
    loop = asyncio.get_running_loop()
    made: asyncio.Future[Made] = loop.create_future()

    def settle(result: Made | None, problem: BaseException | None) -> None:
        if made.done():
            return
        if problem is None:
            made.set_result(cast("Made", result))
        elif isinstance(problem, Exception) and not isinstance(problem, StopIteration):
            made.set_exception(problem)
        else:
            # An exit would end the event loop.
            made.set_exception(refuse("unknown_class", f"a class of the deployment raises {type(problem).__name__}"))

    def run() -> None:
        result, problem = None, None
        try:
            result = make()
        except BaseException as raised:
            problem = raised
        # The event loop may have ended since.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, problem)

    threading.Thread(target=run, name="custom steps", daemon=True).start()
    async with asyncio.timeout(limit_s):
        return await made
