"""Look at run records."""

from datetime import datetime
from typing import Unpack

from modestream_client.calls.session import CallOptions, Session
from modestream_client.operations import LIST_RUNS
from modestream_client.runs import Pipeline, RunList


class RunCalls(Session):
    """A session that lists how requests went."""

    async def list_runs(
        self,
        *,
        pipeline: Pipeline | None = None,
        failed: bool | None = None,
        since: datetime | str | None = None,
        memory_id: str | None = None,
        run_id: str | None = None,
        limit: int | None = None,
        **options: Unpack[CallOptions],
    ) -> RunList:
        """Return the newest recorded runs of this user, in all projects that the caller may read.

        A service records failed runs, and of the others the share that its setting says.

        >>> (await memory.list_runs(failed=True)).runs
        ()

        Parameters
        ----------
        pipeline
            `memorize`, `retrieve` or `evolve`; default: all.
        failed
            True: runs with a failure; False: those without one; default: both.
        since
            Runs that began then or later.
        memory_id
            The runs of one turn: accepted, embedded, understood.
        run_id
            One run.
        limit
            At most so many, up to 200; default: 50.
        """
        arguments = {
            "pipeline": pipeline,
            "failed": failed,
            "since": since.isoformat() if isinstance(since, datetime) else since,
            "memory_id": memory_id,
            "run_id": run_id,
            "limit": limit,
        }
        given = {name: value for name, value in arguments.items() if value is not None}
        return await self._run(LIST_RUNS, given, **options)
