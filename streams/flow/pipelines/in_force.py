"""The pipelines in force in this worker: those of the current revision, and of earlier ones where a record asks.

Guaranteed: a revision is in force only if all that it names is here: classes, profiles, templates. Otherwise the last
one before it that can run is in force, which is that of the release if there is no other. What custom steps of the
refused one must see is not handled without them then, and no language model gets a text that it would not get by the
refused one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic import BaseModel

from agents.ports.pipelines import CustomStep, InstalledSteps, StepPorts
from agents.rules.pipelines.built_in import custom_steps, has_custom_at
from agents.rules.pipelines.contract import StepContract, refuse
from agents.rules.pipelines.editing import shipped_revision
from agents.rules.pipelines.validation import Available, build_pipeline_view, check_topology
from schemas.failures import Rejected, Unavailable
from schemas.state.pipelines import SHIPPED, PlacedStep, Revision, Topology
from streams.flow.pipelines.active import ModelOf, RevisionPipelines, beside_event_loop
from streams.flow.pipelines.custom_step import StepAccess
from streams.flow.pipelines.history import PipelineHistory

log = structlog.get_logger()

INGEST, EXTRACT_ITEMS = "memorize.ingest", "memorize.extract_items"
"""The built-in steps after which custom steps may change a turn, and its items, before they are stored."""

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
        """Return the pipelines of a topology. Raises Rejected, with the rule that is broken, if it can't run here."""
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
        """Refuse likewise."""
        raise refuse("unknown_class", f"{step.implementation} is not installed")


def shipped_pipelines() -> Pipelines:
    """Return the pipelines of the release, which can't be edited."""

    async def refused(_revision: Revision) -> None:
        raise Unavailable("there is no topic of pipelines here")

    return Pipelines(PipelineHistory(refused), NothingInstalled())
