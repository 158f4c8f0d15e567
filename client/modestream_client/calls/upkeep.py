"""Consolidate, run maintenance jobs, look at health."""

from typing import Literal, Unpack

from modestream_client.answers import parse_as
from modestream_client.calls.session import CallOptions, Session
from modestream_client.operations import COMMANDS, CONSOLIDATE, HEALTH, REFRESH
from modestream_client.results import Consolidation, FinishedJob, FinishedRefresh, ServiceHealth

Job = Literal["backfill", "rebuild", "reconcile", "retry_failed"]


class UpkeepCalls(Session):
    """A session that keeps memories in order. Long runs need a longer `timeout`; after one they go on all the same."""

    async def consolidate(self, mode: str | None = None, **options: Unpack[CallOptions]) -> Consolidation:
        """Distil repeated memories of this project in one mode, or each mode by itself. Twice in a row is once.

        >>> for day in ("Monday", "Tuesday", "Wednesday"):
        ...     _ = await memory.remember(f"Watered the tomatoes in the greenhouse on {day}, they look healthy.")
        >>> len((await memory.consolidate(timeout=30)).created)
        1
        """
        scope = self._scope(options.get("user_id"), options.get("project_id"))
        record = CONSOLIDATE.record_of(scope, {"mode": mode})
        reply = await self._ask(CONSOLIDATE.topic, record, options.get("principal"), options.get("timeout"))
        return parse_as(CONSOLIDATE.result, reply.result)

    async def run_job(
        self, job: Job, *, mode: str | None = None, all_projects: bool = False, **options: Unpack[CallOptions]
    ) -> FinishedJob:
        """Make vectors again, of one mode or all, in this project or all projects; return when it is done.

        `backfill`: of memories without a current vector; `rebuild`: of all; `reconcile`: what the index lacks or should
        not have; `retry_failed`: of those that failed.

        >>> _ = await memory.remember("The kettle is blue.")
        >>> (await memory.run_job("rebuild")).processed
        1
        """
        arguments = {"mode": mode, "all_projects": all_projects}
        done: FinishedJob = await self._run(COMMANDS[job], arguments, **options)
        return done

    async def refresh(
        self,
        *,
        mode: str | None = None,
        all_projects: bool = False,
        before_revision: int | None = None,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        **options: Unpack[CallOptions],
    ) -> FinishedRefresh:
        """Have turns understood again that rules, or an earlier profile or prompt, have understood.

        With `before_revision` those of earlier revisions, too. Until `remaining` is 0, the next call goes on.

        >>> _ = await memory.remember("The kettle is blue.")
        >>> (await memory.refresh()).remaining
        0
        """
        asked = {
            "mode": mode,
            "all_projects": all_projects,
            "before_revision": before_revision,
            "max_calls": max_calls,
            "max_tokens": max_tokens,
        }
        return await self._run(REFRESH, asked, **options)

    async def health(self, **options: Unpack[CallOptions]) -> ServiceHealth:
        """Return the state of this user's vectors by mode, and of the deployment.

        >>> (await memory.health()).modes["general"].failed
        0
        """
        return await self._run(HEALTH, **options)
