"""Show how a job or a consolidation goes, or how it ended: the command `get_job`."""

import re

from agents.ports.command_types import CommandResult, parse_arguments
from agents.ports.jobs import Jobs
from schemas.failures import Rejected
from schemas.internal.job_history import StoredJob
from schemas.messages.command_arguments import GetJob
from schemas.messages.commands import Command

CONSOLIDATION_ID = re.compile(r"consolidate-(\d{1,9})-(\d{1,18})")
"""The id of a consolidation: partition and offset of its trigger."""


class ShowJob:
    """The command `get_job` in, the state of the job and its answer out."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def __call__(self, command: Command, _offset: int) -> CommandResult:
        """Show a job of the command's boundary. Raises Rejected, `not_found`, for any other.

        A sender that may not read all projects sees the jobs of those that it may read. A trigger that is written and
        not yet read is `running`, whatever its scope; commands of a user are read in order, before this one.
        """
        job_id, boundary = parse_arguments(GetJob, command).job_id, command.scope.boundary
        # Before the job is looked up: it may begin, and end, while the log is asked.
        is_pending = await self._is_pending(job_id)
        job = self._jobs.find(boundary, job_id)
        if job is None and is_pending:
            return CommandResult(StoredJob(job_id=job_id, project=None, at_ms=0).body())
        if job is None or not _is_within(job, command.permitted_projects):
            message = "this user has no job of that id, or had it too long ago"
            raise Rejected("not_found", message, "arguments.job_id")
        return CommandResult(job.body())

    async def _is_pending(self, job_id: str) -> bool:
        found = CONSOLIDATION_ID.fullmatch(job_id)
        return found is not None and await self._jobs.is_pending(int(found[1]), int(found[2]))


def _is_within(job: StoredJob, projects: tuple[str, ...] | None) -> bool:
    """True if the job is one of these projects, None for all."""
    return projects is None or job.project in projects
