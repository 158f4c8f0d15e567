"""`get_job` shows the jobs of the sender's projects, and triggers that are not read yet."""

from typing import Any

import pytest

from agents.commands.edit_pipelines import ShowJob
from schemas.failures import Rejected
from schemas.internal.job_history import JobHistory, StoredJob
from schemas.messages.commands import Command
from schemas.messages.replies import SuccessReply
from schemas.scopes import Scope
from streams.flow.job_log import JobLog
from tests.fakes.tables.json_table import FakeJsonTable

PARTITION = 2


class WrittenRequests:
    """Requests of partition 2 from offset 5 to 9 are written and not read yet."""

    async def is_pending(self, partition: int, offset: int) -> bool:
        return partition == PARTITION and 5 <= offset < 10


@pytest.fixture
def log() -> JobLog:
    """The jobs of u1: one of p1 that is done, and one of all projects that runs."""
    jobs = JobLog(FakeJsonTable(JobHistory), WrittenRequests(), WrittenRequests())
    jobs.begin(PARTITION, "u1", StoredJob(job_id="backfill-2-1", project="p1", at_ms=1))
    jobs.begin(PARTITION, "u1", StoredJob(job_id="rebuild-2-3", project=None, at_ms=1))
    jobs.end(PARTITION, "u1", "backfill-2-1", SuccessReply({"processed": 3}).encode())
    return jobs


async def shown(log: JobLog, job_id: str, permitted: tuple[str, ...] | None = None, user: str = "u1") -> Any:
    """Return the state of a job, or the code of the error."""
    command = Command(command="get_job", scope=Scope(user_id=user), arguments={"job_id": job_id})
    try:
        result = await ShowJob(log.at(PARTITION)).get_job(command.limited_to(permitted), 0)
    except Rejected as error:
        return error.code
    return result.result["state"]


async def test_jobs_are_running_or_done(log: JobLog) -> None:
    assert await shown(log, "backfill-2-1") == "done"
    assert await shown(log, "rebuild-2-3") == "running"
    assert await shown(log, "rebuild-2-3", user="u2") == "not_found"


async def test_a_sender_sees_the_jobs_of_its_projects_alone(log: JobLog) -> None:
    assert await shown(log, "backfill-2-1", ("p1", "p2")) == "done"
    assert await shown(log, "backfill-2-1", ("p2",)) == "not_found"
    assert await shown(log, "rebuild-2-3", ("p1",)) == "not_found"


@pytest.mark.parametrize(
    ("job_id", "expected"),
    [
        ("consolidate-2-5", "running"),
        ("consolidate-2-4", "not_found"),
        ("consolidate-2-10", "not_found"),
        ("consolidate-1-5", "not_found"),
        ("rebuild-2-5", "running"),
        ("rebuild-2-4", "not_found"),
        ("list_modes-2-5", "not_found"),
        ("consolidate-2-5-", "not_found"),
    ],
)
async def test_a_request_that_is_not_read_yet_is_running(log: JobLog, job_id: str, expected: str) -> None:
    assert await shown(log, job_id) == expected


async def test_a_trigger_that_ends_while_the_log_is_asked_is_shown_as_it_ended() -> None:
    jobs = JobLog(FakeJsonTable(JobHistory))

    class Ending:
        async def is_pending(self, partition: int, _offset: int) -> bool:
            jobs.begin(partition, "u1", StoredJob(job_id="consolidate-2-5", project="default", at_ms=1))
            jobs.end(partition, "u1", "consolidate-2-5", SuccessReply({}).encode())
            return False

    jobs = JobLog(FakeJsonTable(JobHistory), Ending())
    assert await shown(jobs, "consolidate-2-5") == "done"
