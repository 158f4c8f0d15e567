"""The pipelines in force in this worker: those of the current revision, and of earlier ones where a record asks."""

from collections.abc import Callable

import structlog
from pydantic import BaseModel

from agents.ports.language_model import LanguageModel
from agents.ports.pipelines import InstalledSteps, OwnStep, StepPorts
from agents.rules.pipelines.contract import StepContract
from agents.rules.pipelines.places import has_own_at
from agents.rules.pipelines.refusals import refuse
from agents.rules.pipelines.releases import shipped_revision
from schemas.failures import Rejected, Unavailable
from schemas.state.pipelines import PlacedStep, Revision
from streams.flow.support.active_pipelines import RevisionPipelines
from streams.flow.support.pipeline_history import PipelineHistory

log = structlog.get_logger()

INGEST = "memorize.ingest"
"""The built-in step after which own steps may change a turn."""


class Pipelines:
    """Switches between two events: an event that has begun ends with the revision that it began with."""

    def __init__(
        self,
        history: PipelineHistory,
        installed: InstalledSteps,
        language: LanguageModel | None = None,
        on_defect: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_defect` is called where a revision can't run here: its turns would be stored otherwise than it says."""
        self.history = history
        self.installed = installed
        self._language = language
        self._on_defect = on_defect
        self.current = RevisionPipelines(shipped_revision(), installed, language)
        self.have_prepared_turns = False
        """True if own steps change turns, or have done so in any revision."""
        self._earlier: dict[int, RevisionPipelines | None] = {}

    def start(self) -> None:
        """Put the revision in force that was read last, and from now on each one that is read.

        Earlier ones are not: their classes may be gone.
        """
        every = self.history.latest(self.history.current().number + 1)
        self.have_prepared_turns = any(has_own_at(one.topology, INGEST) for one in every)
        self._switch(self.history.current())
        self.history.on_changed = self._switch

    def in_force(self) -> tuple[int, str]:
        """Return number and hash of the current revision, for run records."""
        revision = self.current.revision
        return revision.number, revision.hash

    def at(self, number: int) -> RevisionPipelines | None:
        """Return the pipelines of a revision; None if it can't run here any more."""
        if number == self.current.number:
            return self.current
        if number not in self._earlier:
            self._earlier[number] = self._made(self.history.find(number))
        return self._earlier[number]

    def _made(self, revision: Revision | None) -> RevisionPipelines | None:
        try:
            return None if revision is None else RevisionPipelines(revision, self.installed, self._language)
        except Rejected:
            return None

    def _switch(self, revision: Revision) -> None:
        try:
            self.current = RevisionPipelines(revision, self.installed, self._language)
        except Rejected as problem:
            log.critical("a revision can't run here", revision=revision.number, problem=problem.message)
            self._on_defect()
            return
        self.have_prepared_turns = self.have_prepared_turns or self.current.has_own(INGEST)
        log.info("pipelines switched", revision=revision.number, hash=revision.hash[:12], author=revision.author)


class NothingInstalled:
    """Implements `agents.ports.pipelines.InstalledSteps` of a deployment without own steps."""

    def contract(self, step: PlacedStep) -> StepContract:
        """Refuse: there is no class."""
        raise refuse("unknown_class", f"{step.implementation} is not installed")

    def build(self, step: PlacedStep, _config: BaseModel, _ports: StepPorts) -> OwnStep:
        """Refuse likewise."""
        raise refuse("unknown_class", f"{step.implementation} is not installed")


def shipped_pipelines() -> Pipelines:
    """Return the pipelines of the release, which can't be edited."""

    async def refused(_revision: Revision) -> None:
        raise Unavailable("there is no topic of pipelines here")

    return Pipelines(PipelineHistory(refused), NothingInstalled())
