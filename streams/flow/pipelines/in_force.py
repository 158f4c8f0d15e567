"""The pipelines in force in this worker: those of the current revision, and of earlier ones where a record asks.

Guaranteed: a revision is in force only if all that it names is here: classes, profiles, templates. Otherwise the last
one before it that can run is in force, which is that of the release if there is no other. What custom steps of the
refused one must see is not handled without them then, and no language model gets a text that it would not get by the
refused one.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import structlog
from pydantic import BaseModel

from agents.ports.clock import step as timed_step
from agents.ports.models import LanguageModel
from agents.ports.pipelines import BuiltInStep, CustomStep, InstalledSteps, State, StepPorts
from agents.rules.pipelines.built_in import BUILT_IN, custom_steps, has_custom_at, steps_not_to_skip
from agents.rules.pipelines.contract import CustomStepConfig, StepContract, refuse
from agents.rules.pipelines.validation import (
    Available,
    build_pipeline_view,
    check_topology,
    contract_of,
    read_config,
    shipped_revision,
)
from schemas.failures import Rejected, Unavailable
from schemas.state.pipelines import SHIPPED, PlacedStep, Revision, Topology
from streams.flow.pipelines.comparing import PipelineHistory
from streams.flow.pipelines.custom_step import RunnableStep, StepAccess, step_under_way

# The pipelines of one revision, ready to run. A step that raises, hangs or returns what it did not declare costs its
# turn or question an error or a warning, and no other one anything.

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
                with timed_step(place):
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


log = structlog.get_logger()

INGEST, READ_FILES, EXTRACT_ITEMS = "memorize.ingest", "memorize.read_files", "memorize.extract_items"
"""The built-in steps after which custom steps may change a turn, its files and its items before they are stored."""

EDIT_IMPORT_S = 8.0
"""Time limit of an import, and of construction, that an edit waits for: callers over HTTP wait 10 s by default."""

IMPORT_S = 30.0
"""Time limit of either at a start, when all of a machine's workers may import at once."""


@dataclass(frozen=True, slots=True)
class RefusedRevision:
    """A revision that counts and can't run in this worker; `problem` begins with the rule, where it breaks one here."""

    revision: int
    problem: str


class Pipelines:
    """Implements `agents.ports.pipelines.RunnablePipelines`; switches between two events.

    An event that has begun ends with the revision that it began with.
    """

    def __init__(
        self,
        history: PipelineHistory,
        installed: InstalledSteps,
        available: Available | None = None,
        model_of: ModelOf | None = None,
    ) -> None:
        """`available` are profiles and templates of this worker."""
        self.history = history
        self._installed = installed
        self._available = available or Available()
        self._model_of = model_of
        self.access = StepAccess()
        """What custom steps search and write by, once the worker has its agents."""
        self.current = self._of(shipped_revision())
        self.switches = 0
        """Grows with each switch."""
        self.refused: RefusedRevision | None = None
        """The revision that counts, if another one is in force because this worker can't run it."""
        self.have_prepared_turns = False
        """True if custom steps change turns, or have done so in any revision."""
        self._earlier: dict[int, RevisionPipelines | None] = {}
        self._blocking: list[list[tuple[str, PlacedStep]]] = []
        """Custom steps of revisions whose construction has not ended."""

    async def start(self) -> None:
        """Put the revision in force that was read last, and from now on each one that is read."""
        every = self.history.latest(self.history.current().number + 1)
        self.have_prepared_turns = any(has_custom_at(revision.topology, INGEST) for revision in every)
        await self._switch(self.history.current())
        self.history.on_changed = self._switch

    def in_force(self) -> tuple[int, str]:
        """Return number and hash of the revision in force, for run records."""
        revision = self.current.revision
        return revision.number, revision.hash

    def turns_wait(self) -> str | None:
        """Return why turns wait for the revision that counts, as it has a step that must not be skipped; else None."""
        refused = self.current.refused_places
        return refused.get(INGEST) or refused.get(EXTRACT_ITEMS)

    def status(self) -> dict[str, Any]:
        """Return the part of `health` that is about the pipelines."""
        refused = self.refused and {"revision": self.refused.revision, "problem": self.refused.problem}
        return {"revision": self.history.current().number, "running": self.current.number, "refused": refused}

    async def draft(self, topology: Topology) -> RevisionPipelines:
        return await self._runnable(self.history.current().model_copy(update={"topology": topology}), EDIT_IMPORT_S)

    async def describe(self, revision: Revision) -> dict[str, Any]:
        """Return a revision as commands show it, with the one that is in force, and why, if it is another one."""
        await self._installed.load(revision.topology, EDIT_IMPORT_S)
        status = self.status()
        shown = build_pipeline_view(revision, self._installed.contract)
        return {**shown, "running": status["running"], "refused": status["refused"]}

    async def at(self, number: int) -> RevisionPipelines | None:
        """Return the pipelines of a revision; None if its classes are not here any more."""
        if number == self.current.number:
            return self.current
        if number not in self._earlier:
            self._earlier[number] = await self._made(self.history.find(number))
        return self._earlier[number]

    async def _made(self, revision: Revision | None) -> RevisionPipelines | None:
        if revision is None:
            return None
        try:
            await self._installed.load(revision.topology, IMPORT_S, again=False)
            return await self._constructed(revision, lambda: self._of(revision), IMPORT_S, again=False)
        except Rejected:
            return None

    async def _runnable(self, revision: Revision, limit_s: float, *, again: bool = True) -> RevisionPipelines:
        """Return the pipelines of a revision, with all that they name. Raises Rejected if something is missing."""

        def checked() -> RevisionPipelines:
            check_topology(revision.topology, self._installed.contract, self._available)
            return self._of(revision)

        await self._installed.load(revision.topology, limit_s, again=again)
        return await self._constructed(revision, checked, limit_s, again=again)

    def _of(self, revision: Revision) -> RevisionPipelines:
        return RevisionPipelines(revision, self._installed, self._model_of, self.access)

    async def _constructed(
        self, revision: Revision, make: Callable[[], RevisionPipelines], limit_s: float, *, again: bool
    ) -> RevisionPipelines:
        """Call `make` within the limit. Raises Rejected, without `again` at once for what has blocked."""
        own = [*custom_steps(revision.topology)]
        blocked = refuse("unknown_class", f"the construction of its custom steps did not end within {limit_s:g} s")
        if own in self._blocking and not again:
            raise blocked
        try:
            made = await beside_event_loop(make, limit_s)
        except TimeoutError as late:
            self._blocking.append(own)
            raise blocked from late
        self._blocking = [blocking for blocking in self._blocking if blocking != own]
        return made

    async def _switch(self, revision: Revision) -> None:
        refused = None
        try:
            active = await self._runnable(revision, IMPORT_S)
        # Anything else too: the reader of the topic must go on to the next revision.
        except Exception as problem:
            message = problem.message if isinstance(problem, Rejected) else repr(problem)
            refused = RefusedRevision(revision.number, message)
            reason = f"revision {revision.number} of the pipelines can't run here: {message}"
            active = (await self._last_before(revision)).instead_of(revision.topology, reason)
        self.current, self.refused, self.switches = active, refused, self.switches + 1
        self.have_prepared_turns = self.have_prepared_turns or self.current.has_custom(INGEST)
        if refused is None:
            log.info("pipelines switched", revision=revision.number, hash=revision.hash[:12], author=revision.author)
            return
        log.critical(
            "a revision of the pipelines can't run here; add what is missing and restart, or roll it back",
            revision=refused.revision,
            problem=refused.problem,
            running=active.number,
            held=sorted(active.refused_places),
        )

    async def _last_before(self, revision: Revision) -> RevisionPipelines:
        """Return the last pipelines before a revision that can run.

        Those of the release are the last resort, which needs nothing: without a worker no command would roll back.
        """
        for number in range(revision.number - 1, SHIPPED, -1):
            earlier = self.history.find(number)
            if earlier is None:
                continue
            try:
                # Fifty revisions may name one module that blocks: it is tried once.
                return await self._runnable(earlier, IMPORT_S, again=False)
            except Exception as problem:
                log.info("an earlier revision of the pipelines can't run here", revision=number, problem=repr(problem))
        return self._of(shipped_revision())


class NothingInstalled:
    """Implements `agents.ports.pipelines.InstalledSteps` of a deployment without custom steps."""

    async def load(self, _topology: Topology, _limit_s: float, *, again: bool = True) -> None:
        """Import nothing."""

    def contract(self, step: PlacedStep) -> StepContract:
        """Refuse: there is no class."""
        raise refuse("unknown_class", f"{step.implementation} is not installed")

    def build(self, step: PlacedStep, _config: BaseModel, _ports: StepPorts) -> CustomStep:
        raise refuse("unknown_class", f"{step.implementation} is not installed")


def shipped_pipelines() -> Pipelines:
    """Return the pipelines of the release, which can't be edited."""

    async def refused(_revision: Revision) -> None:
        raise Unavailable("there is no topic of pipelines here")

    return Pipelines(PipelineHistory(refused), NothingInstalled())


def _profile(step_id: str, topology: Topology) -> object:
    """Return the language model profile that a topology names for a step; None: the step's role chooses it."""
    step = topology.find(step_id)
    return None if step is None else step.config.get("profile")
