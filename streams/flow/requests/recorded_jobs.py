"""Which requests are jobs, and their ids: what is asked for, and partition and offset of the record that asks.

So the writer of a request knows the id of its job as soon as Kafka has acknowledged the record, in the right partition.
"""

from schemas.internal.changes import JOB_KINDS, Job
from schemas.internal.consolidation import ConsolidationTrigger
from schemas.internal.job_history import StoredJob
from schemas.messages.commands import Command
from schemas.messages.records import Record
from schemas.scopes import Scope


def requested_job(command: Command, record: Record) -> StoredJob | None:
    """Return the job that a command starts, None for other commands."""
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
    """Return the consolidation that a trigger asks for."""
    return _stored(consolidation_id(record.partition, record.offset), trigger.scope, record, covers_all=False)


def consolidation_id(partition: int, offset: int) -> str:
    """Return the id of a consolidation by its trigger's place."""
    return f"consolidate-{partition}-{offset}"


def _stored(job_id: str, scope: Scope, record: Record, *, covers_all: bool) -> StoredJob:
    project = None if covers_all else scope.project_id
    return StoredJob(job_id=job_id, project=project, at_ms=record.timestamp_ms)
