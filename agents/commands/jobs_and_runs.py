"""Show jobs, consolidations, imports and runs: the commands `get_job`, `report_import` and `list_runs`."""

import re

from modestream_client.arguments import GetJob, ListRuns, ReportImport
from modestream_client.runs import Run

from agents.ports.commands import CommandResult, parse_arguments
from agents.ports.jobs import Jobs, RunLog
from schemas.failures import Rejected
from schemas.internal.job_history import StoredJob
from schemas.messages.commands import Command
from schemas.scopes import PROJECT_FIELD

JOB_ID = re.compile(r"([a-z_]{1,32})-(\d{1,9})-(\d{1,18})")
"""The id of a job: its kind, and partition and offset of the request for it."""


class ShowJob:
    """The command `get_job` in, the state of the job and its answer out."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def get_job(self, command: Command, _offset: int) -> CommandResult:
        """Show a job of the command's boundary. Raises Rejected, `not_found`, for any other.

        A sender that may not read all projects sees the jobs of those that it may read. A request for a job that is
        written and not yet read is `running`, whatever its scope.
        """
        job_id, boundary = parse_arguments(GetJob, command).job_id, command.scope.boundary
        job = self._jobs.find(boundary, job_id)
        request = JOB_ID.fullmatch(job_id) if job is None else None
        if request is not None and await self._jobs.is_pending(request[1], int(request[2]), int(request[3])):
            return CommandResult(StoredJob(job_id=job_id, project=None, at_ms=0).body())
        # Looked up again: it may begin, and end, while the log is asked.
        job = self._jobs.find(boundary, job_id)
        projects = command.permitted_projects
        if job is None or (projects is not None and job.project not in projects):
            message = "this user has no job of that id, or had it too long ago"
            raise Rejected("not_found", message, "arguments.job_id")
        return CommandResult(job.body())

    async def report_import(self, command: Command, _offset: int) -> CommandResult:
        """Accept a report about an import; the request's recorder stores it."""
        return CommandResult({"job_id": parse_arguments(ReportImport, command).job_id})


class ShowRuns:
    """The command `list_runs` in, the newest runs of its boundary out."""

    def __init__(self, partition: int, log: RunLog) -> None:
        self._partition = partition
        self._log = log

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
        page = await self._log.newest(self._partition, command.scope.boundary, admits, wanted.limit, since_ms)
        runs = [run.model_dump(mode="json", by_alias=True) for run in page.runs]
        return CommandResult({"runs": runs, "is_complete": page.is_complete})
