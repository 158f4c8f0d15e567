"""The port to the service: a record in, its reply out."""

from typing import Any, Protocol

from modestream_client.answers import Reply
from modestream_client.records import Written
from modestream_client.transport import OnPartial

Json = dict[str, Any]


class Backend(Protocol):
    """Requests and replies. Every method raises the client's errors: `MemoryClientError` and its subclasses."""

    async def request(
        self,
        topic: str,
        value: Json,
        *,
        principal: str | None,
        timeout: float,
        deadline: bool = True,
        on_partial: OnPartial | None = None,
    ) -> tuple[Reply, Written]:
        """Send a record with a `scope` to `topic` (without its prefix) and wait for its reply.

        With `deadline` the service drops the request after `timeout` seconds. `on_partial` asks for partial replies.
        """
        ...

    async def write(self, topic: str, value: Json, *, principal: str | None, timeout: float) -> Written:
        """Send a record and wait until it is written, but not for its effect."""
        ...

    async def partition_of(self, user_id: str) -> int:
        """Return the partition of the user's records."""
        ...
