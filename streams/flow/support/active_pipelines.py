"""The pipelines of one revision, ready to run: configurations are parsed, and own steps are constructed.

Enters: a revision and the installed classes. Leaves: settings of built-in steps, and what own steps make of a state.
Guaranteed: a step that raises, hangs or returns what it did not declare costs its turn or question an error or a
warning, and no other one anything.
"""

import asyncio
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import structlog
from pydantic import BaseModel

from agents.ports import run_timer
from agents.ports.language_model import LanguageModel
from agents.ports.pipelines import InstalledSteps, OwnResult, OwnStep, StepPorts
from agents.rules.pipelines.built_in import BUILT_IN
from agents.rules.pipelines.contract import StepContract
from agents.rules.pipelines.own_contract import OwnStepConfig, on_failure_of
from agents.rules.pipelines.places import own_steps
from agents.rules.pipelines.privacy import is_private
from agents.rules.pipelines.products import WrongProduct, product_of
from agents.rules.pipelines.validation import contract_of, read_config
from schemas.failures import Rejected
from schemas.messages.replies import ReplyWarning
from schemas.state.pipelines import PlacedStep, Revision

log = structlog.get_logger()


ModelOf = Callable[[str], LanguageModel]
"""Returns the language models of the step with this name."""


class _Own(NamedTuple):
    """An own step, constructed."""

    contract: StepContract
    config: OwnStepConfig
    call: OwnStep


class RevisionPipelines:
    """Implements `agents.ports.pipelines.ActivePipelines` for one revision."""

    def __init__(self, revision: Revision, installed: InstalledSteps, model_of: ModelOf | None = None) -> None:
        """Construct the own steps. Raises Rejected if the revision names a class that is not installed here."""
        self.revision = revision
        self.number = revision.number
        self._installed = installed
        self._model_of = model_of
        self._refused: Mapping[str, str] = {}
        steps = revision.topology.steps()
        self._on = {one.step_id for one in steps if one.enabled and one.implementation is None}
        self._configs = {one.step_id: read_config(one, contract_of(one, installed.contract)) for one in steps}
        self._own: dict[str, list[_Own]] = {}
        for place, step in own_steps(revision.topology):
            self._own.setdefault(place, []).append(self._constructed(step))

    def is_on(self, step_id: str) -> bool:
        return step_id in self._on

    def config(self, step_id: str) -> BaseModel:
        return self._configs[step_id]

    def has_own(self, place: str) -> bool:
        return place in self._own or place in self._refused

    def without(self, places: Mapping[str, str], steps: Collection[str]) -> "RevisionPipelines":
        """Return the same, where nothing passes these places, each with the reason, and these steps are off."""
        less = copy(self)
        less._refused, less._on = places, self._on - set(steps)  # noqa: SLF001 - its own
        return less

    @property
    def refused_places(self) -> Mapping[str, str]:
        """The places that nothing passes, each with the reason."""
        return self._refused

    async def run_own(self, place: str, state: Mapping[str, Any]) -> OwnResult:
        if place in self._refused:
            raise Rejected("unavailable", self._refused[place])
        produces = BUILT_IN[place].opens or ""
        value, warnings = state.get(produces), []
        for step in self._own.get(place, ()):
            before = {**state, produces: value}
            if "language_model" in step.contract.capabilities and is_private(before):
                continue
            try:
                with run_timer.step(step.contract.step_id):
                    value = await _produced(step, produces, before)
            except BaseException as problem:
                if not isinstance(problem, Exception) and _is_cancelled(problem):
                    raise
                # Also an exit, or a cancellation that only the step has raised: no step ends the worker. Messages of
                # exceptions may have texts of memories: the log of the worker names the step and the kind.
                log.warning("own step failed", step=step.contract.step_id, problem=type(problem).__name__)
                warnings.append(_warning_of(step, produces, problem))
        return OwnResult(value, warnings)

    def own_steps(self, place: str) -> Sequence[PlacedStep]:
        """Return the own steps of a place, with classes and configurations."""
        return [step for one, step in own_steps(self.revision.topology) if one == place]

    def _constructed(self, step: PlacedStep) -> _Own:
        contract, config = self._installed.contract(step), self._configs[step.step_id]
        assert isinstance(config, OwnStepConfig)
        has_model = "language_model" in contract.capabilities
        model = self._model_of(step.step_id) if has_model and self._model_of is not None else None
        call = self._installed.build(step, config, StepPorts(model))
        return _Own(contract, config, call)


async def _produced(step: _Own, produces: str, before: Mapping[str, Any]) -> Any:
    given = {name: before[name] for name in step.contract.requires}
    async with asyncio.timeout(step.config.timeout_s):
        if inspect.iscoroutinefunction(step.call) or inspect.iscoroutinefunction(type(step.call).__call__):
            returned = await step.call(**given)
        else:
            returned = await asyncio.to_thread(step.call, **given)
    return product_of(returned, produces, before)


def _is_cancelled(problem: BaseException) -> bool:
    """True for the cancellation of the task that runs the step, or its end with the event loop."""
    task = asyncio.current_task()
    return isinstance(problem, GeneratorExit) or (
        isinstance(problem, asyncio.CancelledError) and (task is None or task.cancelling() > 0)
    )


def _warning_of(step: _Own, produces: str, problem: BaseException) -> ReplyWarning:
    """Return the warning about a step that is skipped. Raises Rejected for one that must not be."""
    if isinstance(problem, TimeoutError):
        reason = f"it did not end within {step.config.timeout_s} s"
    else:
        # What a product has wrong is ours to say; other messages may have texts of memories.
        reason = str(problem) if isinstance(problem, WrongProduct) else type(problem).__name__
    message = f"step {step.contract.step_id} failed: {reason}"
    if on_failure_of(step.config, produces) == "reject":
        raise Rejected("internal", message) from problem
    return ReplyWarning("step_failed", message)
