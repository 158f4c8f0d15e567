"""Edit the pipelines by command: validate, and write an accepted change as a revision.

Enters: commands of operators. Leaves: revisions. Guaranteed: what breaks a rule changes nothing; of two edits at a time
one counts, and the other is validated against it or refused; a command that is delivered twice makes one revision.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from modestream_client.arguments import GetContext, GetJob, ListRuns, Rate, ReportImport
from modestream_client.pipeline_edits import EditPipeline, GetPipeline, ListRevisions, RollbackPipeline
from modestream_client.runs import Run
from pydantic_core import to_json

from agents.ports.clock import Clock
from agents.ports.commands import CommandResult, ContextLog, Jobs, RunLog, parse_arguments
from agents.ports.pipelines import RequestComparison, Revisions, RunnablePipelines
from agents.ports.stores import Memories, Modes
from agents.rules.context.section_candidates import CATEGORY_ID_PREFIX
from agents.rules.pipelines.validation import apply_edits
from schemas.failures import Rejected
from schemas.internal.job_history import StoredJob
from schemas.messages.commands import Command
from schemas.messages.published import LoggedContext, LoggedReference, Rating
from schemas.moments import milliseconds_of
from schemas.scopes import PROJECT_FIELD
from schemas.state.pipelines import Revision, Topology

JOB_ID = re.compile(r"([a-z_]{1,32})-(\d{1,9})-(\d{1,18})")
"""The id of a job: its kind, and partition and offset of the request for it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ShowJob:
    """The command `get_job` in, the state of the job and its answer out."""

    jobs: Jobs

    async def get_job(self, command: Command, _offset: int) -> CommandResult:
        """Show a job of the command's boundary. Raises Rejected, `not_found`, for any other.

        A sender that may not read all projects sees the jobs of those that it may read. A request for a job that is
        written and not yet read is `running`, whatever its scope.
        """
        job_id, boundary = parse_arguments(GetJob, command).job_id, command.scope.boundary
        job = self.jobs.find(boundary, job_id)
        request = JOB_ID.fullmatch(job_id) if job is None else None
        if request is not None and await self.jobs.is_pending(request[1], int(request[2]), int(request[3])):
            return CommandResult(StoredJob(job_id=job_id, project=None, at_ms=0).body())
        # Looked up again: it may begin, and end, while the log is asked.
        job = self.jobs.find(boundary, job_id)
        projects = command.permitted_projects
        if job is None or (projects is not None and job.project not in projects):
            message = "this user has no job of that id, or had it too long ago"
            raise Rejected("not_found", message, "arguments.job_id")
        return CommandResult(job.body())

    async def report_import(self, command: Command, _offset: int) -> CommandResult:
        """Accept a report about an import; the request's recorder stores it."""
        return CommandResult({"job_id": parse_arguments(ReportImport, command).job_id})


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ShowRuns:
    """The command `list_runs` in, the newest runs of its boundary out."""

    partition: int
    log: RunLog

    async def list_runs(self, command: Command, _offset: int) -> CommandResult:
        """Show the newest runs, of all projects that the sender may read. Raises Unavailable.

        A sender that may not read all projects sees no runs of several of which it may not read one, and none of
        records that could not be read.
        """
        wanted, projects = parse_arguments(ListRuns, command), command.permitted_projects

        def admits(run: Run) -> bool:
            selected = run.scope.get(PROJECT_FIELD)
            # Of a run over several projects, all have to be permitted.
            of_run = {selected} if isinstance(selected, str) else set(selected or ())
            return (
                (wanted.pipeline is None or run.pipeline == wanted.pipeline)
                and (wanted.failed is None or (run.failure is not None) == wanted.failed)
                and (wanted.since is None or run.at >= wanted.since)
                and (wanted.memory_id is None or run.memory_id == wanted.memory_id)
                and (wanted.run_id is None or run.run_id == wanted.run_id)
                and (projects is None or (selected is not None and of_run <= set(projects)))
            )

        since_ms = 0 if wanted.since is None else round(wanted.since.timestamp() * 1000)
        page = await self.log.newest(self.partition, command.scope.boundary, admits, wanted.limit, since_ms)
        runs = [run.model_dump(mode="json", by_alias=True) for run in page.runs]
        return CommandResult({"runs": runs, "is_complete": page.is_complete})


MAX_SHOWN_TURNS = 100
"""Turns of one reference: a memory may be distilled from thousands."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ShowContexts:
    """The commands `get_context` and `rate` in, what a context was based on, or a rating of that, out."""

    partition: int
    log: ContextLog
    memories: Memories
    modes: Modes
    clock: Clock

    async def get_context(self, command: Command, _offset: int) -> CommandResult:
        """Show what a context of the command's boundary was based on. Raises Rejected or Unavailable."""
        context = await self._found(command, parse_arguments(GetContext, command).context_id)
        shown = context.model_dump(mode="json", by_alias=True)
        return CommandResult(shown | {"references": [self._reference(each) for each in context.references]})

    async def rate(self, command: Command, offset: int) -> CommandResult:
        """Accept a rating of references of a context. Raises Rejected or Unavailable."""
        wanted = parse_arguments(Rate, command)
        context = await self._found(command, wanted.context_id)
        known = {reference.memory_id for reference in context.references}
        for name, rated in (("useful", wanted.useful), ("not_useful", wanted.not_useful)):
            if unknown := [memory_id for memory_id in rated if memory_id not in known]:
                message = f"this context has no reference {unknown[0][:80]!r}"
                raise Rejected("invalid_value", message, f"arguments.{name}")
        if both := {*wanted.useful} & {*wanted.not_useful}:
            message = f"{min(both)[:80]!r} is both useful and not"
            raise Rejected("invalid_value", message, "arguments.not_useful")
        rating = Rating(
            context_id=context.context_id,
            rating_id=f"{self.partition}-{offset}",
            scope=context.scope,
            at=self.clock.now(),
            mode=context.mode,
            revision=context.revision,
            principal=command.author,
            useful=tuple(dict.fromkeys(wanted.useful)),
            not_useful=tuple(dict.fromkeys(wanted.not_useful)),
        )
        return CommandResult({"rated": len(rating.useful) + len(rating.not_useful)}, rating=rating)

    async def _found(self, command: Command, context_id: str) -> LoggedContext:
        """Return a context that the sender may see. Raises Rejected, `not_found`, for any other, and Unavailable."""
        boundary = command.scope.boundary
        context = await self.log.find(self.partition, boundary, context_id)
        forgotten = self.modes.get(boundary).forgotten_turns
        is_forgotten = context is not None and forgotten is not None and milliseconds_of(context.at) <= forgotten.at_ms
        if context is None or is_forgotten or not context.is_within(command.permitted_projects):
            message = "this user has no context of that id, or had it too long ago, or CONTEXT_LOG is off"
            raise Rejected("not_found", message, "arguments.context_id")
        return context

    def _reference(self, reference: LoggedReference) -> dict[str, Any]:
        shown = reference.model_dump(mode="json", exclude={"offset"}) | {"turns": []}
        memory = self.memories.get(reference.memory_id)
        if memory is None:
            # What a category's summary rested on is not kept.
            is_category = reference.memory_id.startswith(CATEGORY_ID_PREFIX)
            return shown if is_category else shown | {"forgotten": True}
        ids = dict.fromkeys(quote.memory_id for quote in memory.evidence if quote.memory_id is not None)
        turns = [memory] if memory.origin == "said" else map(self.memories.get, list(ids)[:MAX_SHOWN_TURNS])
        shown["turns"] = [
            {
                "turn_id": turn.turn_id,
                "conversation_id": turn.conversation_id,
                "partition": self.partition,
                "offset": turn.latest if reference.offset is None else reference.offset,
            }
            for turn in turns
            if turn is not None
        ]
        return shown


MAX_ATTEMPTS = 5
"""Attempts of one command that finds another revision before its own."""

Change = Callable[[Revision], Topology]
"""Returns the topology after a change of this revision. Raises Rejected."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EditPipelines:
    """Commands in, revisions out.

    `partition` is part of what identifies a command.
    """

    partition: int
    revisions: Revisions
    pipelines: RunnablePipelines
    clock: Clock
    compare: RequestComparison

    async def get_pipeline(self, command: Command, _offset: int) -> CommandResult:
        """Show a revision with all steps, their contracts and settings. Raises Rejected `not_found`."""
        number = parse_arguments(GetPipeline, command).revision
        revision = self.revisions.current() if number is None else self._find(number)
        return CommandResult(await self._view(revision))

    async def list_revisions(self, command: Command, _offset: int) -> CommandResult:
        """List the last revisions, latest first."""
        latest = self.revisions.latest(parse_arguments(ListRevisions, command).limit)
        return CommandResult(
            {"current": self.revisions.current().number, "revisions": [revision.summary() for revision in latest]}
        )

    async def edit_pipeline(self, command: Command, offset: int) -> CommandResult:
        """Accept all edits of a command, or none. Raises Rejected with the rule that one breaks, or `conflict`."""
        wanted = parse_arguments(EditPipeline, command)
        if wanted.compare_last is not None and not wanted.dry_run:
            raise Rejected("invalid_value", "only a dry run compares", "arguments.compare_last")
        about = {"note": wanted.note}
        if wanted.dry_run:
            current = self._expected(wanted.expected_revision)
            topology = apply_edits(current.topology, wanted.edits)
            drafted = await self.pipelines.draft(topology)
            draft = current.model_copy(update={"topology": topology, "hash": topology.digest})
            shown = {**await self._view(draft), "dry_run": True}
            if wanted.compare_last is None:
                return CommandResult(shown)
            boundary, running = command.scope.boundary, self.pipelines.current
            compared = await self.compare(boundary, running, drafted, wanted.compare_last)
            return CommandResult({**shown, "comparison": compared})

        def change(current: Revision) -> Topology:
            return apply_edits(current.topology, wanted.edits)

        return await self._make(command, offset, wanted.expected_revision, change, about)

    async def rollback_pipeline(self, command: Command, offset: int) -> CommandResult:
        """Restore an earlier revision as a new one; the revisions in between stay in the list."""
        wanted = parse_arguments(RollbackPipeline, command)
        restored = self._find(wanted.revision)
        about = {"note": wanted.note, "restores": restored.number}
        return await self._make(command, offset, wanted.expected_revision, lambda _: restored.topology, about)

    async def _make(
        self, command: Command, offset: int, expected: int | None, change: Change, about: Mapping[str, Any]
    ) -> CommandResult:
        request = f"{self.partition}:{offset}:{hashlib.sha256(to_json(command.arguments)).hexdigest()[:16]}"
        if (made := self.revisions.made_by(request)) is not None:
            return CommandResult(await self._view(made))
        for _ in range(MAX_ATTEMPTS):
            current = self._expected(expected)
            topology = change(current)
            await self.pipelines.draft(topology)
            if topology == current.topology:
                return CommandResult(await self._view(current))
            revision = Revision(
                number=current.number + 1,
                parent=current.number,
                hash=topology.digest,
                author=command.author,
                created_at=self.clock.now(),
                request=request,
                topology=topology,
                **about,
            )
            if await self.revisions.append(revision):
                return CommandResult(await self._view(revision))
        raise Rejected("conflict", "the pipelines are being edited by others; look at them, and try again")

    def _expected(self, expected: int | None) -> Revision:
        current = self.revisions.current()
        if expected is not None and expected != current.number:
            message = f"the pipelines are at revision {current.number} by now, not {expected}"
            raise Rejected("conflict", message, "arguments.expected_revision")
        return current

    def _find(self, number: int) -> Revision:
        revision = self.revisions.find(number)
        if revision is None:
            raise Rejected("not_found", f"there is no revision {number}", "arguments.revision")
        return revision

    async def _view(self, revision: Revision) -> dict[str, Any]:
        return await self.pipelines.describe(revision)
