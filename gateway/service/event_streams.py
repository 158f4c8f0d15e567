"""The events of one user for one caller: only projects that it may read."""

from collections.abc import AsyncIterator, Awaitable, Callable

from gateway.service.access import may_read_project, require_user
from gateway.service.calls import Call
from gateway.service.feed import Feed, Sent
from gateway.service.requests import CheckedRequests


async def already_begun() -> None:
    """The feed reads already."""


class EventStreams:
    """Opens streams of events. `begin` returns once the feed reads: it starts with its first listener."""

    def __init__(
        self, requests: CheckedRequests, feed: Feed, begin: Callable[[], Awaitable[None]] = already_begun
    ) -> None:
        self._requests = requests
        self._feed = feed
        self._begin = begin

    async def open(self, call: Call, after: str | None) -> AsyncIterator[Sent]:
        """Return the user's events from now on, or from behind the id `after`. Raises Refused."""
        require_user(call.caller, call.user_id, "read")
        partition = await self._requests.partition_of(call.user_id)
        await self._begin()
        return self._readable(call, self._feed.listen(self._requests.key_of(call.user_id), partition, after))

    async def _readable(self, call: Call, sent: AsyncIterator[Sent]) -> AsyncIterator[Sent]:
        async for one in sent:
            if isinstance(one.event, str) or may_read_project(call.caller, call.user_id, one.event.project_id):
                yield one
