"""Writing to a deployment in Kafka: records with their times, and requests with answers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, TypeVar, cast

from modestream_client import MemoryServiceError, MemoryUnreachable
from modestream_client.answers import Json, Reply, reply_of
from modestream_client.kafka.connection import CORRELATION_ID, Connection, PendingReplies, open_connection
from modestream_client.kafka.log_reader import LogReader, TopicAndPartition
from pydantic_core import from_json, to_json

from operations.copy.entry_builder import CopiedRecord, Entry, Positions, copied_record
from operations.copy.kafka_source import log_topics
from operations.deployment import until_embedded
from schemas.messages.records import Headers, Record
from schemas.scope_models import some_scope
from schemas.state.policies import OPERATOR
from streams.adapters.kafka.clients import committed_offsets, ensure_topics
from streams.adapters.kafka.logs import PIPELINES_PARTITION, open_reader, read_to_end
from streams.settings import Settings
from streams.topics import group_id, kept_hours, topic_configs, topics_with_prefix

OPEN_TIMEOUT_S = 30.0

REPLY_TIMEOUT_S = 10.0
"""After this time without a reply, check in the worker's committed offsets whether a record has taken effect."""

RETRY_S = 1.0

REVISION_TIMEOUT_S = 60.0
"""Timeout for a revision of the pipelines: a worker reads it within a second."""

MAX_TRIES = 10
"""Tries of a command that the target answers as unavailable."""

DISTILLED_TYPES = ["semantic", "procedural", "document", "state_object"]
"""Types of distilled memories and items."""

READ_AT_ONCE = 1000
"""Records of the target read at once to find their origins."""


class KafkaTarget:
    """Writes to a deployment; implements `LogTarget`."""

    def __init__(
        self,
        settings: Settings,
        reader: LogReader,
        connection: Connection,
        replies: PendingReplies,
        principal: str | None,
        say: Callable[[str], None],
    ) -> None:
        """`say` gets the reason of a wait, and an empty text when it continues."""
        self._settings = settings
        self._reader = reader
        self._connection = connection
        self._replies = replies
        self._principal = principal
        self._say = say
        self._topics = log_topics(settings.topic_prefix)
        self._pipelines = topics_with_prefix(settings.topic_prefix).pipelines
        self.partitions = settings.partitions

    async def ends(self) -> Positions:
        ends = await self._reader.ends()
        return {
            (log, number): ends[topic, number]
            for log, topic in self._topics.items()
            for number in range(self.partitions)
        }

    async def copied_since(self, since: Positions) -> frozenset[CopiedRecord]:
        copies: set[CopiedRecord] = set()
        for (log, partition), end in (await self.ends()).items():
            offset = since.get((log, partition), 0)
            while offset < end:
                records, offset = await self._reader.read((self._topics[log], partition), offset, READ_AT_ONCE)
                copies.update(copied for record in records if (copied := copied_record(log, record)) is not None)
        return frozenset(copies)

    async def write(self, entry: Entry) -> int:
        """Write a record until Kafka has it. Raises MemoryServiceError, `too_large`."""
        _, offset = await self._send(self._topics[entry.log], entry, entry.headers)
        return offset

    async def carry_out(self, entry: Entry) -> str | None:
        """Write a command or trigger, and wait until it has taken effect.

        Raises MemoryServiceError, `too_large` of Kafka, or `unavailable` after `MAX_TRIES`.
        """
        for _ in range(MAX_TRIES):
            reply = await self._carried_out(entry)
            try:
                if reply is not None:
                    reply_of(reply)
            except MemoryServiceError as refused:
                if refused.code != "unavailable":
                    return f"{refused.code}: {refused.message}"
                await asyncio.sleep(RETRY_S)
            else:
                return None
        raise MemoryServiceError("unavailable", f"so says the worker of {self._settings.topic_prefix}")

    async def _carried_out(self, entry: Entry) -> bytes | None:
        """Write a record and wait until it has taken effect; return its reply, or None if the reply was lost."""
        with self._replies.expect() as pending:
            headers = (*entry.headers, *self._reply_headers(pending.correlation_id))
            partition, offset = await self._send(self._topics[entry.log], entry, headers)
            while True:
                done, _ = await asyncio.wait({pending.reply}, timeout=REPLY_TIMEOUT_S)
                if done:
                    self._say("")
                    return pending.reply.result()
                # A reply is lost if its client's connection breaks at the wrong moment. A committed record has taken
                # effect, and so have its consequences: they are written before.
                is_committed = await self._is_committed({(self._topics[entry.log], partition): offset + 1})
                if is_committed and await self._is_committed(await self._settled_ends()):
                    return None
                self._wait_for_worker()

    async def wait_applied(self, scope: Mapping[str, str], offset: int) -> None:
        """Wait until the turns up to an offset are applied, by a list that reads after it."""
        wanted = {"schema": "list.v1", "scope": dict(scope), "what": "projects", "limit": 1, "read_after": offset}
        while True:
            reply = await self._ask("retrieve", wanted)
            if all(warning.code != "not_caught_up" for warning in reply.warnings):
                return

    async def wait_embedded(self, scope: Mapping[str, str]) -> None:
        await until_embedded(partial(self._command, "health", scope))

    async def keep_distilled(self, scope: Mapping[str, str], kept: Collection[str]) -> int:
        wanted = {"schema": "list.v1", "scope": dict(scope), "what": "memories", "types": DISTILLED_TYPES, "limit": 500}
        memories: list[Json] = []
        cursor = None
        while True:
            page = (await self._ask("retrieve", {**wanted, "include_superseded": True, "cursor": cursor})).result
            memories += page["items"]
            if (cursor := page["next"]) is None:
                break
        # An item of several turns has no turn either.
        without_turn = [
            memory["memory_id"] for memory in memories if memory["turn_id"] is None and memory["memory_id"] not in kept
        ]
        extra = [
            memory_id
            for memory_id in without_turn
            if (await self._command("get_memory", scope, memory_id=memory_id))["origin"] == "distilled"
        ]
        for memory_id in extra:
            await self._command("forget", scope, memory_id=memory_id)
        return len(extra)

    async def revision_keys(self) -> frozenset[bytes | None]:
        return frozenset(
            [revision.key for revision in await read_to_end(self._settings, self._pipelines, [PIPELINES_PARTITION])]
        )

    async def set_revision(self, revision: Record) -> None:
        """Write a revision, and wait until a worker has it. Raises ValueError if it is refused."""
        place = (revision.headers, revision.timestamp_ms, PIPELINES_PARTITION)
        await self._produce(self._pipelines, revision.key or b"", revision.value or b"", *place)
        number = from_json(revision.value or b"")["number"]
        scope = some_scope(self._settings.scope_model)
        until = asyncio.get_running_loop().time() + REVISION_TIMEOUT_S
        while asyncio.get_running_loop().time() < until:
            try:
                await self._command("get_pipeline", scope, revision=number)
            except MemoryServiceError as refused:
                if refused.code != "not_found":
                    raise
                await asyncio.sleep(RETRY_S)
            else:
                # Other workers read it by themselves.
                await asyncio.sleep(RETRY_S)
                return
        raise ValueError(
            f"the worker of {self._settings.topic_prefix} does not take revision {number} of the pipelines"
        )

    async def wait_settled(self, *, turns: bool = False) -> None:
        """Wait until the workers have committed all present commands, changes, jobs and triggers."""
        ends = await self._settled_ends(turns=turns)
        while not await self._is_committed(ends):
            self._wait_for_worker()
            await asyncio.sleep(RETRY_S)
        self._say("")

    async def _settled_ends(self, *, turns: bool = False) -> Mapping[TopicAndPartition, int]:
        log = self._topics["turns"]
        return {place: end for place, end in (await self._reader.ends()).items() if turns or place[0] != log}

    async def _is_committed(self, ends: Mapping[TopicAndPartition, int]) -> bool:
        committed = await committed_offsets(self._settings, group_id(self._settings))
        return all(committed.get(place, 0) >= end for place, end in ends.items())

    async def _command(self, name: str, scope: Mapping[str, str], **arguments: Any) -> Json:
        record = {"schema": "command.v1", "command": name, "scope": dict(scope), "arguments": arguments}
        return (await self._ask("commands", record)).result

    async def _ask(self, topic: str, record: Json) -> Reply:
        """Send a request until it is answered. Raises MemoryServiceError."""
        key = self._settings.scope_model.boundary_fields.key(record["scope"]).encode()
        own = (("principal", (self._principal or OPERATOR).encode()),)
        while True:
            with self._replies.expect() as pending:
                headers = (*own, *self._reply_headers(pending.correlation_id))
                await self._produce(f"{self._settings.topic_prefix}{topic}", key, to_json(record), headers)
                done, _ = await asyncio.wait({pending.reply}, timeout=REPLY_TIMEOUT_S)
                if done:
                    self._say("")
                    return reply_of(pending.reply.result())
            self._wait_for_worker()

    async def _send(self, topic: str, entry: Entry, headers: Headers) -> tuple[int, int]:
        return await self._produce(topic, entry.boundary.encode(), entry.value, headers, entry.timestamp_ms)

    async def _produce(
        self,
        topic: str,
        key: bytes,
        value: bytes,
        headers: Headers,
        timestamp_ms: int | None = None,
        partition: int | None = None,
    ) -> tuple[int, int]:
        while True:
            try:
                return await self._connection.send(
                    topic, key, value, cast("Any", headers), lambda _: None, timestamp_ms, partition
                )
            except MemoryUnreachable:
                # The first try may have been written: a repeated turn or command takes effect once.
                self._say(f"waiting for Kafka at {self._settings.broker}")
                await asyncio.sleep(RETRY_S)

    def _reply_headers(self, correlation_id: bytes) -> Headers:
        connection = self._connection
        return (
            ("reply_to", connection.reply_topic.encode()),
            ("reply_partition", str(connection.reply_partition).encode()),
            (CORRELATION_ID, correlation_id),
        )

    def _wait_for_worker(self) -> None:
        self._say(f"waiting for a worker of {self._settings.topic_prefix}")


def open_target(
    settings: Settings, principal: str | None, say: Callable[[str], None] = lambda _: None
) -> AbstractAsyncContextManager[KafkaTarget]:
    """Open a deployment for writing, as `open_target_as` does."""
    return open_target_as(KafkaTarget, settings, principal, say)


Target = TypeVar("Target", bound=KafkaTarget)


@asynccontextmanager
async def open_target_as(
    make: Callable[..., Target], settings: Settings, principal: str | None, say: Callable[[str], None]
) -> AsyncIterator[Target]:
    """Create the missing topics of a deployment, and open it for writing with the target from `make`.

    Raises Unavailable or MemoryUnreachable without a broker, ValueError for topics with other numbers of partitions.
    """
    topics = topics_with_prefix(settings.topic_prefix)
    await ensure_topics(settings, topic_configs(topics, kept_hours(settings)))
    read = (topics.turns, topics.commands, topics.consolidate, topics.changes, topics.jobs)
    places = [(topic, number) for topic in read for number in range(settings.partitions)]
    replies = PendingReplies()
    bootstrap = ",".join(settings.bootstrap_servers)
    async with (
        open_reader(settings, places) as reader,
        open_connection(
            bootstrap, settings.kafka_security, topics.replies, replies.deliver, OPEN_TIMEOUT_S
        ) as connection,
    ):
        yield make(settings, reader, connection, replies, principal, say)
