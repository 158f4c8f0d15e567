"""A wire whose round trips are measured."""

from modestream_client.answers import Reply
from modestream_client.records import Written

from gateway.service.meters import Meters
from gateway.service.wire import Json, Wire


class MeasuredWire:
    """Implements `gateway.service.wire.Wire` over another one."""

    def __init__(self, wire: Wire, meters: Meters) -> None:
        self._wire = wire
        self._meters = meters

    async def request(
        self, topic: str, value: Json, *, principal: str | None, timeout: float, deadline: bool = True
    ) -> tuple[Reply, Written]:
        """Send a record and wait for its reply."""
        with self._meters.round_trip(topic):
            return await self._wire.request(topic, value, principal=principal, timeout=timeout, deadline=deadline)

    async def write(self, topic: str, value: Json, *, principal: str | None, timeout: float) -> Written:
        """Send a record and wait until it is written."""
        with self._meters.round_trip(topic):
            return await self._wire.write(topic, value, principal=principal, timeout=timeout)

    async def partition_of(self, user_id: str) -> int:
        """Return the partition of the user's records."""
        return await self._wire.partition_of(user_id)
