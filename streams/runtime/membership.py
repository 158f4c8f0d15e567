"""The static member of a worker's group, and the end of a process whose place another process has taken.

A worker that starts under the `group.instance.id` of a running one gets its place: Kafka fences the older member.
aiokafka does not handle this error: it forgets its member id, joins again, and fences the newer one, without end, while
both are at work. Guaranteed here: the replaced process ends before its events flow, or else at its next heartbeat or
commit, before it joins again, with the exit code of refused settings. A member whose session has just expired joins
again as before.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError, NoError, UnknownMemberIdError
from aiokafka.protocol.api import Request, RequestStruct
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import HeartbeatRequest, HeartbeatResponse_v1, JoinGroupRequest, SyncGroupRequest
from aiokafka.protocol.types import Int32, Schema, String

from streams.runtime.fence import end_refused

# The heartbeat with a `group.instance.id`, Kafka's version 3.
#
# aiokafka 0.14 sends versions 0 and 1 without it: a static member whose place is taken gets the error of an expired
# session. With version 3 it gets the error of a fenced member.

FENCED_INSTANCE_ID = 82
"""Kafka's error code for a static member whose place is taken; aiokafka 0.14 does not know it."""


class HeartbeatResponseV3(HeartbeatResponse_v1):  # type: ignore[misc]
    API_VERSION = 3


class HeartbeatRequestV3(RequestStruct):  # type: ignore[misc]
    """A heartbeat of a static member, as it is sent."""

    API_KEY = 12
    API_VERSION = 3
    RESPONSE_TYPE = HeartbeatResponseV3
    SCHEMA = Schema(
        ("group", String("utf-8")),
        ("generation_id", Int32),
        ("member_id", String("utf-8")),
        ("group_instance_id", String("utf-8")),
    )


class InstanceHeartbeatRequest(Request[HeartbeatRequestV3]):  # type: ignore[misc]
    """A heartbeat of a static member, in the version that the broker offers."""

    API_KEY = 12

    def __init__(self, *fields: Any) -> None:
        """Take group, generation, member id and `group.instance.id`."""
        self._fields = fields

    def build(self, request_struct_class: type[HeartbeatRequestV3]) -> HeartbeatRequestV3:
        return request_struct_class(*self._fields)


MEMBER_DIGEST_CHARS = 8
"""Hexadecimal digits of the topics' hash in the name of a group member."""

REQUESTS_OF_MEMBERS = (HeartbeatRequest, JoinGroupRequest, SyncGroupRequest, OffsetCommitRequest)
"""Requests that the broker refuses for an unknown member."""

log = structlog.get_logger()


def member_name(worker_id: str, topics: Iterable[str]) -> str:
    """Name a static group member by its worker and by the topics that it reads, changelogs included.

    A static member that returns in time gets its earlier assignment, even if it reads other topics now: the tables that
    an upgrade adds would never be recovered. Under a new name it gets a new assignment, once the session of the earlier
    name has timed out.
    """
    digest = hashlib.sha256("\n".join(sorted(topics)).encode()).hexdigest()
    return f"{worker_id}-{digest[:MEMBER_DIGEST_CHARS]}"


async def remain_member() -> bool:
    """Return that a worker stays in its group at its end, as one that will be restarted."""
    return False


class Membership:
    """Watches a consumer's place in its group."""

    def __init__(self, on_fenced: Callable[[], None] = end_refused) -> None:
        """`on_fenced` is called in the consumer's thread when another process has the place."""
        self._on_fenced = on_fenced
        self.on_joined: Callable[[str], None] = lambda _: None
        """Called in the consumer's thread with the member id of each join."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._coordinator: Any = None
        self._send: Callable[[Any], Awaitable[Any]]

    def watch(self, consumer: AIOKafkaConsumer) -> None:
        """Watch the broker's responses to a started consumer; call it in the consumer's thread."""
        self._loop = asyncio.get_running_loop()
        self._coordinator = consumer._coordinator  # noqa: SLF001 - aiokafka has no callback for it
        self._send = self._coordinator._send_req  # noqa: SLF001
        self._coordinator._send_req = self._send_and_look  # noqa: SLF001

    async def _send_and_look(self, request: Any) -> Any:
        response = await self._send(request)
        if isinstance(request, REQUESTS_OF_MEMBERS):
            codes = error_codes(response)
            if isinstance(request, JoinGroupRequest) and codes == {NoError.errno}:
                self.on_joined(response.member_id)
            # Before aiokafka sees the response: it would forget its member id, and take the place back.
            is_unknown = UnknownMemberIdError.errno in codes
            if FENCED_INSTANCE_ID in codes or (is_unknown and await self._is_fenced()):
                self._end()
        return response

    async def confirm(self) -> None:
        """Ask the broker now, from any thread. Its failure to answer shows at the next heartbeat."""
        if self._loop is not None:
            asking = asyncio.run_coroutine_threadsafe(self._confirm(), self._loop)
            await asyncio.wrap_future(asking)

    def join_again(self) -> None:
        """Have the group assign its partitions again, from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._coordinator.request_rejoin)

    async def _confirm(self) -> None:
        with suppress(KafkaError):
            if await self._is_fenced():
                self._end()

    async def _is_fenced(self) -> bool:
        """Ask the broker whether another member has the place. Raises KafkaError."""
        at = self._coordinator
        if at.member_id == JoinGroupRequest.UNKNOWN_MEMBER_ID:
            return False
        request = InstanceHeartbeatRequest(at.group_id, at.generation, at.member_id, at._group_instance_id)  # noqa: SLF001
        return bool((await self._send(request)).error_code == FENCED_INSTANCE_ID)

    def _end(self) -> None:
        log.error(
            "another worker has taken this one's place in the group, ending the process: every worker needs its own"
            " MODESTREAM_WORKER_ID",
            group=self._coordinator.group_id,
            member=self._coordinator._group_instance_id,  # noqa: SLF001
        )
        self._on_fenced()


def error_codes(response: Any) -> set[int]:
    """Return the error codes of a response to one of `REQUESTS_OF_MEMBERS`; those of all partitions of a commit."""
    if hasattr(response, "topics"):
        return {code for _, partitions in response.topics for _, code in partitions}
    return {response.error_code}
