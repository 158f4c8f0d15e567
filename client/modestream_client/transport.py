"""Transports to the service: records of the wire contract in, replies out; the base of `MemoryCalls`."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from modestream_client.answers import Reply
from modestream_client.records import Written

Json = dict[str, Any]

OWN_WRITES: Literal["own_writes"] = "own_writes"
"""Value of `read_after`: every turn that this client has written for the user."""

ReadAfter = int | str | None
"""`OWN_WRITES`; `"<partition>:<offset>"`, as results of writes have it; an offset of the user's partition; no wait."""

HeadersOf = Callable[[], Mapping[str, str]]
"""Returns further headers of the request being sent, such as `traceparent`."""


OnPartial = Callable[[int, str], None]
"""Takes a partial reply: its number, from 0, and the next piece of the answer's text."""


class Transport(Protocol):
    """One connection to the service, of one event loop. Every method raises a `MemoryClientError`.

    Topics have no prefix, such as `commands`; records have a `schema` and a `scope`. None as `principal` or `timeout`
    (in seconds) means the connection's.
    """

    async def open(self) -> None:
        """Connect. Raises `MemoryUnreachable`."""
        ...

    async def close(self) -> None:
        """Fail pending requests with `MemoryClosed`, and disconnect."""
        ...

    async def resolve_read_after(self, user_id: str, read_after: ReadAfter) -> int | str | None:
        """Return `read_after` in this transport's form; `OWN_WRITES` is the last turn written here."""
        ...

    async def write(self, topic: str, record: Json, *, principal: str | None, timeout: float | None) -> Written:
        """Send a record and wait until it is written, but not for its effect."""
        ...

    async def request(
        self,
        topic: str,
        record: Json,
        *,
        principal: str | None,
        timeout: float | None,
        deadline: bool,
        on_partial: OnPartial | None = None,
    ) -> tuple[Reply, Written | None]:
        """Send a record and wait for its reply; with `deadline` the service drops it after the timeout.

        The position is None if the transport does not know it. `on_partial` requests partial replies and receives them.
        """
        ...
