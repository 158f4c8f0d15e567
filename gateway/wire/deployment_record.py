"""The record of the deployment, on the topic `service`: a gateway with other scopes than it was made with is refused.

Its keys would be others, and its paths would name no users: each record of it would be refused, or have to be moved.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from pydantic import ValidationError

from gateway.wire.follow import Cluster, Follower
from schemas.internal.service import ServiceRecord, scope_fields
from schemas.messages.records import Record
from schemas.scopes import Scope

TOPIC = "service"


def scope_conflict(record: ServiceRecord, scope: type[Scope]) -> str | None:
    """Return why a gateway with these scopes can't serve a deployment; None if it can."""
    for what, made, own in (
        ("scopes of", record.scope_fields, scope_fields(scope)),
        ("the boundary", record.boundary, scope.boundary_fields),
    ):
        if made != own:
            return (
                "setting MODESTREAM_SCOPE_MODEL: the deployment was created with "
                f"{what} {', '.join(made)}, not {', '.join(own)}: give the gateway the model of the workers"
            )
    return None


class DeploymentRecord:
    """Looks once at the record, as soon as there is one."""

    def __init__(self, cluster: Cluster, scope: type[Scope]) -> None:
        self._follower = Follower(cluster, [TOPIC], "beginning", self.take)
        self._scope = scope
        self._record: ServiceRecord | None = None
        self._found = asyncio.Event()

    @property
    def conflict(self) -> str | None:
        """Why this gateway can't serve the deployment; None if it can, or as long as nothing is known."""
        return None if self._record is None else scope_conflict(self._record, self._scope)

    async def check(self) -> str | None:
        """Wait for the record, and return the conflict with it."""
        following = asyncio.create_task(self._follower.run())
        try:
            await self._follower.is_caught_up.wait()
            await self._found.wait()
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
        return self.conflict

    def take(self, records: Sequence[Record]) -> None:
        """Take the first record since the last tombstone: it counts. What can't be read is the workers' concern."""
        for one in records:
            if one.value is None:
                self._record = None
            elif self._record is None:
                with suppress(ValidationError):
                    self._record = ServiceRecord.model_validate_json(one.value)
                    self._found.set()
