"""The topic `service`, as a gateway reads it: the record of the deployment, and its successor.

A gateway with other scopes than the deployment's is refused: its record keys would differ, and its paths would name no
users. A deployment that is being replaced gets no further records: they might not be copied.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from pydantic import ValidationError

from gateway.backend.followers import Cluster, Follower
from schemas.internal.service import PAUSE_S, SERVICE_KEY, SUCCESSOR_KEY, ServiceRecord, Successor, scope_fields
from schemas.messages.records import Record
from schemas.scopes import Scope

TOPIC = "service"


def scope_conflict(record: ServiceRecord, scope: type[Scope]) -> str | None:
    """Return why a gateway with these scopes can't serve a deployment; None if it can."""
    for what, recorded, configured in (
        ("scopes of", record.scope_fields, scope_fields(scope)),
        ("the boundary", record.boundary, scope.boundary_fields),
    ):
        if recorded != configured:
            return (
                "setting MODESTREAM_SCOPE_MODEL: the deployment was created with "
                f"{what} {', '.join(recorded)}, not {', '.join(configured)}: give the gateway the model of the workers"
            )
    return None


class CircularSuccession(Exception):
    """Deployments name each other as successors, so none can serve."""


class Succession:
    """The chain of deployments, starting with the one in the settings."""

    def __init__(self, first: Cluster) -> None:
        self._followed = [(first.bootstrap, first.topic_prefix)]

    def follow(self, successor: Cluster) -> None:
        """Note the next deployment. Raises CircularSuccession if it is already in the chain."""
        address = successor.bootstrap, successor.topic_prefix
        is_circle = address in self._followed
        self._followed.append(address)
        if is_circle:
            circle = " to ".join(prefix for _, prefix in self._followed)
            raise CircularSuccession(
                f"deployments name each other as successors, {circle}: mark the successor as `withdrawn` in "
                "the topic `service` of the one that serves (docs/recovery.md, Migrating)"
            )


class DeploymentRecord:
    """State of a deployment; follow its topic with `async with record.following()`."""

    def __init__(self, cluster: Cluster, scope: type[Scope], pause_s: float = PAUSE_S) -> None:
        """`pause_s`: maximum seconds of a pause."""
        self._follower = Follower(cluster, [TOPIC], "beginning", self.take)
        self._scope = scope
        self._pause_s = pause_s
        self._record: ServiceRecord | None = None
        self._successor: Successor | None = None
        self._pauses_until = 0.0
        self._successor_ms = 0
        self._changed = asyncio.Event()

    @property
    def conflict(self) -> str | None:
        """Why this gateway can't serve the deployment; None if it can, and before the record was read."""
        return None if self._record is None else scope_conflict(self._record, self._scope)

    @property
    def successor(self) -> Successor | None:
        """The deployment that gateways send to instead; None without one."""
        return self._successor if self._successor is not None and self._successor.serves else None

    @property
    def is_paused(self) -> bool:
        """True while nothing may be sent: the last records are being copied."""
        pauses = self._successor is not None and self._successor.state == "pausing"
        return pauses and time.monotonic() < self._pauses_until

    @property
    def serves(self) -> bool:
        """True if gateways may send to the deployment, and this one can."""
        is_known = self._follower.is_caught_up.is_set() and self._record is not None
        return is_known and self.conflict is None and self.successor is None and not self.is_paused

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._follower.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def until_known(self) -> None:
        """Wait for the record of the deployment, or of its successor."""
        await self._follower.is_caught_up.wait()
        while self._record is None and self.successor is None:
            await self._next_change()

    async def until_serving(self) -> None:
        await self.until_known()
        while not self.serves:
            await self._next_change()

    async def until_ended(self) -> None:
        """Wait until the deployment does not serve, or no longer."""
        await self.until_known()
        while self.serves:
            await self._next_change()

    async def until_decided(self) -> None:
        """Wait until a pause has ended, for any reason."""
        while self.is_paused:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pauses_until - time.monotonic()):
                    await self._next_change()

    async def _next_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def take(self, records: Sequence[Record]) -> None:
        """Take records. Of the deployment's the first since the last tombstone counts, of the successor's the last.

        Unreadable records are the workers' concern.
        """
        for record in records:
            with suppress(ValidationError):
                if record.key == SERVICE_KEY and record.value is None:
                    self._record = None
                elif record.key == SERVICE_KEY and self._record is None:
                    self._record = ServiceRecord.model_validate_json(record.value or b"")
                elif record.key == SUCCESSOR_KEY:
                    self._successor = Successor.model_validate_json(record.value or b"null")
                    if record.timestamp_ms != self._successor_ms:
                        # A record that has just come is new, whatever this machine's clock says. One that was there
                        # at the start, or is reread after an outage, counts by its own time: an old one, of a killed
                        # switch, pauses nothing.
                        is_new = self._follower.is_caught_up.is_set() and record.timestamp_ms > self._successor_ms
                        age_s = 0.0 if is_new else max(0.0, time.time() - record.timestamp_ms / 1000)
                        self._pauses_until = time.monotonic() + self._pause_s - age_s
                        self._successor_ms = max(self._successor_ms, record.timestamp_ms)
        self._changed.set()
