"""The client over Kafka.

    async with MemoryClient("127.0.0.1:9092", user_id="u1") as memory:
        await memory.remember("The deploy target is fly.io now.", speaker="Ana")
        answer = await memory.retrieve("where do we deploy?")
        print(answer.hits[0].text)

Requests go to the request topics; typed results come from the shared reply topic. Every call ends with its result or
with one of the errors of `modestream_client.failures`. A query sees the earlier writes of this client (read your own
writes). A client belongs to one event loop, is meant to stay open, and serves any number of concurrent calls and users.
`modestream_client.http_client` has the same calls over the gateway.
"""

from collections.abc import Mapping, Sequence

from modestream_client.answers import Json, Reply
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.calls.memory_calls import MemoryCalls
from modestream_client.calls.session import DEFAULT_TIMEOUT_S, UserId
from modestream_client.kafka.security import KafkaSecurity
from modestream_client.kafka.transport import KafkaTransport
from modestream_client.records import Written
from modestream_client.transport import HeadersOf


class MemoryClient(MemoryCalls):
    """A connection to the memory service, used as `async with MemoryClient(…) as memory`.

    Parameters
    ----------
    bootstrap
        Kafka's address, such as `127.0.0.1:9092`; several are separated by commas.
    user_id
        The user of calls that name none.
    project_id
        The project of calls that name none.
    topic_prefix
        The prefix of the service's topic names. A deployment that replaces it has another one.
    timeout
        Limit of a call in seconds, opening and closing included.
    principal
        The caller, for a service with an authorization file; every call can name another.
    scope
        Values of further fields of the service's scope model, for every call.
    boundary
        The boundary fields of the service's scope model, in declared order. With others than `user_id` a user is their
        values, `{"organization_id": "acme", "user_id": "u1"}`, or their canonical string, `acme/u1`.
    headers
        Called for each record; returns further headers of it, such as `traceparent`.
    security
        TLS and SASL; default: neither.

    Every method takes a `timeout` in seconds and a `principal` for that call, and raises a `MemoryClientError`:
    `MemoryServiceError` for the service's own errors, `MemoryTimeout`, `MemoryUnreachable`, `MemoryClosed`.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        user_id: UserId | None = None,
        project_id: str = "default",
        topic_prefix: str = "memory.",
        timeout: float = DEFAULT_TIMEOUT_S,
        principal: str | None = None,
        scope: Mapping[str, str] | None = None,
        boundary: Sequence[str] = USER_BOUNDARY,
        headers: HeadersOf | None = None,
        security: KafkaSecurity | None = None,
    ) -> None:
        fields = BoundaryFields(boundary)
        self._kafka = KafkaTransport(bootstrap, topic_prefix, timeout, principal, headers, security, fields)
        super().__init__(self._kafka, user_id=user_id, project_id=project_id, scope=scope, boundary=fields)

    async def request(
        self,
        topic: str,
        value: Json,
        *,
        principal: str | None = None,
        timeout: float | None = None,
        deadline: bool = True,
    ) -> tuple[Reply, Written]:
        """Send any record with a `scope` and wait for its reply; return that and the record's place.

        `topic` has no prefix, such as `consolidate`. With `deadline` the service drops the request after the timeout;
        a turn is stored all the same, without a reply.
        """
        return await self._kafka.request(topic, value, principal=principal, timeout=timeout, deadline=deadline)

    async def partition_of(self, user_id: UserId) -> int:
        """Return the partition of the user's records, the same on every topic."""
        return await self._kafka.partition_of(self._users(user_id)[0])
