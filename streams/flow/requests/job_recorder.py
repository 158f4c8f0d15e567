"""Requests whose answer is kept, so that it can be asked for later: jobs and consolidations.

Enters: a handler. Leaves: a handler that does the same, and stores how each request began and ended. Guaranteed: the
answer is stored before the request is acknowledged. A request that is delivered again is stored again under the same
id. What ends the process, or is left to another worker, stays `running`: it is delivered again.

The id of a job is what is asked for, and partition and offset of the record that asks. So the writer of a request knows
it as soon as Kafka has acknowledged the record, in the right partition.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from modestream_client.arguments import ReportImport
from modestream_client.operations import REPORT_IMPORT

from agents.ports.commands import parse_arguments
from schemas.failures import Rejected, Unavailable
from schemas.internal.changes import JOB_KINDS, Job
from schemas.internal.consolidation import ConsolidationTrigger
from schemas.internal.job_history import StoredJob
from schemas.messages.commands import Command
from schemas.messages.records import Record
from schemas.messages.replies import SuccessReply, encode_error
from schemas.scopes import Scope
from streams.flow.job_log import JobLog
from streams.flow.publisher import await_all
from streams.flow.requests.channel import Handler, HandlerResult, ReplyOptions, rejection_of

JobOf = Callable[[Any, Record], StoredJob | None]
"""Returns the job that a request starts; None if it starts none."""


class JobRecorder:
    """A handler whose answers are stored by jobs."""

    def __init__(self, handler: Handler, job_of: JobOf, jobs: JobLog, *, begins: bool = True) -> None:
        """Without `begins` the jobs were begun by other requests, and what is unavailable is tried after a restart."""
        self._handler = handler
        self._job_of = job_of
        self._jobs = jobs
        self._begins = begins

    async def __call__(self, message: Any, record: Record, options: ReplyOptions) -> HandlerResult:
        job = self._job_of(message, record)
        if job is None:
            return await self._handler(message, record, options)
        place = record.partition, message.scope.boundary
        if job.progress is not None:
            # It runs elsewhere, and tells here how far it is: what is answered is not its answer.
            handled = await self._handler(message, record, options)
            return replace(handled, pending_writes=[*handled.pending_writes, *self._jobs.report(*place, job)])
        begun = self._jobs.begin(*place, job) if self._begins else []
        try:
            handled = await self._handler(message, record, options)
            answer = None if handled.answer is None else handled.answer.encode()
        except Exception as problem:
            await await_all([*begun, *self._refused(place, job, problem)])
            raise
        ended = [] if answer is None else self._jobs.end(*place, job.job_id, answer)
        return replace(handled, pending_writes=[*handled.pending_writes, *begun, *ended])

    def _refused(self, place: tuple[int, str], job: StoredJob, problem: Exception) -> list[Awaitable[None]]:
        if isinstance(problem, (Unavailable, MemoryError)) and not self._begins:
            return []
        error = problem if isinstance(problem, Rejected) else rejection_of(problem)
        return self._jobs.end(*place, job.job_id, encode_error(error))


def requested_job(command: Command, record: Record) -> StoredJob | None:
    """Return the job that a command starts, or reports about; None for other commands. Raises Rejected."""
    if command.command == REPORT_IMPORT.name:
        report = parse_arguments(ReportImport, command)
        job = _stored(report.job_id, command.scope, record, covers_all=report.all_projects)
        answer = None
        if report.result is not None:
            answer = SuccessReply(report.result).encode()
        elif report.error is not None:
            error = report.error
            # What a client reports is a code of the contract, or one of HTTP alone.
            answer = encode_error(Rejected(error.code, error.message, error.field))  # type: ignore[arg-type]
        counts = report.model_dump(include={"read", "stored", "duplicate", "refused"})
        reported = job.model_copy(update={"progress": counts})
        return reported if answer is None else reported.answered(answer)
    if command.command not in JOB_KINDS:
        return None
    covers_all = command.arguments.get("all_projects") is True
    return _stored(
        f"{command.command}-{record.partition}-{record.offset}", command.scope, record, covers_all=covers_all
    )


def running_job(job: Job, record: Record) -> StoredJob:
    """Return the job that a command has started."""
    return _stored(job.job_id, job.scope, record, covers_all=job.all_projects)


def consolidation_job(trigger: ConsolidationTrigger, record: Record) -> StoredJob:
    return _stored(consolidation_id(record.partition, record.offset), trigger.scope, record, covers_all=False)


def consolidation_id(partition: int, offset: int) -> str:
    """Return the id of a consolidation by its trigger's place."""
    return f"consolidate-{partition}-{offset}"


def _stored(job_id: str, scope: Scope, record: Record, *, covers_all: bool) -> StoredJob:
    project = None if covers_all else scope.project_id
    return StoredJob(job_id=job_id, project=project, at_ms=record.timestamp_ms)
