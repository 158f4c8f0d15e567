"""Show how a job or a consolidation goes, or how it ended: the command `get_job`."""

import re

from modestream_client.arguments import GetJob

from agents.ports.command_types import CommandResult, parse_arguments
from agents.ports.jobs import Jobs
from schemas.failures import Rejected
from schemas.internal.job_history import StoredJob
from schemas.messages.commands import Command

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
        if job is None and await self._is_pending(job_id):
            return CommandResult(StoredJob(job_id=job_id, project=None, at_ms=0).body())
        # Looked up again: it may begin, and end, while the log is asked.
        job = self._jobs.find(boundary, job_id)
        if job is None or not _is_within(job, command.permitted_projects):
            message = "this user has no job of that id, or had it too long ago"
            raise Rejected("not_found", message, "arguments.job_id")
        return CommandResult(job.body())

    async def _is_pending(self, job_id: str) -> bool:
        request = JOB_ID.fullmatch(job_id)
        return request is not None and await self._jobs.is_pending(request[1], int(request[2]), int(request[3]))


def _is_within(job: StoredJob, projects: tuple[str, ...] | None) -> bool:
    """True if the job is one of these projects, None for all."""
    return projects is None or job.project in projects
