"""Verify one user, whose log and table were read: the words by a list, the vectors by the job `verify`."""

from collections.abc import Collection
from dataclasses import dataclass

from modestream_client import MemoryClient, MemoryServiceError
from modestream_client.answers import Json
from modestream_client.operations import command_topic

from operations.deployment import scope_of
from operations.listing import UserListing
from operations.verification.findings import MENDED_BY_JOBS, Findings
from operations.verification.logged import TableGaps
from schemas.messages.boundaries import Boundary
from streams.settings import Settings

JOB_TIMEOUT_S = 3600.0
"""Limit of a job of one user."""


@dataclass(frozen=True, slots=True)
class UserVerification:
    """Looks at one user through the service."""

    memory: MemoryClient
    settings: Settings
    boundary: Boundary

    async def look(self, gaps: TableGaps, rows: Collection[str]) -> Findings:
        """Return what is amiss; `rows` are the ids that the table has."""
        found = Findings()
        listed = {one["memory_id"] for one in await self._listing().memories()}
        found.checked.update(rows=len(rows), listed=len(listed))
        found.note("table_missing", sorted(gaps.missing))
        found.note("table_different", sorted(gaps.different))
        found.note("unlogged", sorted(gaps.unlogged))
        found.note("words_missing", [one for one in sorted(set(rows) - listed) if await self._exists(one)])
        await self._add_vectors(found)
        return found

    async def mend_vectors(self) -> None:
        """Run the jobs that make and remove vectors."""
        await self._job("reconcile")
        await self._job("retry_failed")

    async def _add_vectors(self, found: Findings) -> None:
        answer = await self._job("verify")
        found.checked["vectors"] += answer["checked"]
        for name in ("words_orphaned", *MENDED_BY_JOBS):
            found.note(name, answer["examples"].get(name, []), answer[name])

    async def _job(self, name: str) -> Json:
        scope = await scope_of(self.memory, self.settings, self.boundary, None)
        record = {"schema": "command.v1", "command": name, "scope": scope, "arguments": {"all_projects": True}}
        reply, _ = await self.memory.request("commands", record, timeout=JOB_TIMEOUT_S)
        return reply.result

    async def _exists(self, memory_id: str) -> bool:
        """True if a memory that is not listed is there all the same: it was not forgotten meanwhile."""
        for scope in await self._listing().scopes():
            arguments = {"memory_id": memory_id}
            record = {"schema": "command.v1", "command": "get_memory", "scope": scope, "arguments": arguments}
            try:
                await self.memory.request(command_topic("get_memory"), record)
            except MemoryServiceError as refused:
                if refused.code != "not_found":
                    raise
            else:
                return True
        return False

    def _listing(self) -> UserListing:
        return UserListing(self.memory, self.boundary, self.settings.scope_model)
