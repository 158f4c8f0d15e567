"""Producers of the worker's records; topics, committed offsets and members of groups, through Kafka's admin protocol.

Each task over the admin protocol has a separate connection: an idle one may be closed by either side. No lookup creates
a topic.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    KafkaError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)
from aiokafka.protocol.metadata import MetadataRequest

from schemas.failures import Unavailable
from schemas.messages.records import Outgoing
from streams.runtime.fence import GroupFence
from streams.settings import KafkaConnection, Settings
from streams.topics import MAX_OUTPUT_BYTES, group_id, topics_with_prefix

log = structlog.get_logger()


@asynccontextmanager
async def connected_admin(settings: Settings) -> AsyncIterator[AIOKafkaAdminClient]:
    """Yield a connected client; closed with the block. Raises KafkaError or OSError."""
    admin = AIOKafkaAdminClient(**settings.kafka_connection)
    try:
        await admin.start()
        yield admin
    finally:
        await admin.close()


@asynccontextmanager
async def _available_admin(settings: Settings, failure: str = "") -> AsyncIterator[AIOKafkaAdminClient]:
    """Like `connected_admin`, but raises Unavailable, also for errors in the block; `failure` describes the failure."""
    try:
        async with connected_admin(settings) as admin:
            yield admin
    except (KafkaError, OSError) as problem:
        failure = failure or f"Kafka at {settings.broker} can't be reached"
        raise Unavailable(f"{failure}: {problem!r}") from problem


async def partitions_of_topics(
    admin: AIOKafkaAdminClient, topics: Collection[str] | None = None
) -> Mapping[str, frozenset[int]]:
    """Return the partitions of these topics, or of all; missing topics have none. Raises KafkaError or OSError."""
    request = MetadataRequest(None if topics is None else list(topics), allow_auto_topic_creation=False)
    # aiokafka's own lookup would create a topic for any name that a caller gives as its reply topic.
    response = await admin._send_request(request)  # noqa: SLF001
    topics_described = response.to_object()["topics"]
    return {each["topic"]: frozenset(part["partition"] for part in each["partitions"]) for each in topics_described}


class NotProvisioned(ValueError):
    """A topic is missing, or has other settings than it needs, and the worker may change nothing."""


async def ensure_topics(settings: Settings, wanted: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """Create the missing topics, in one request, all with the same number of partitions; return their names.

    `wanted` has each topic's configuration by its name. Topics that clients write to may have more partitions: records
    there are moved. Raises Unavailable while Kafka can't be reached, ValueError for any other number of partitions,
    NotProvisioned where something is missing that may not be created.
    """
    partitions, replicas = settings.partitions, settings.replication_factor
    async with _available_admin(settings) as admin:
        existing = await _check_partitions(admin, settings, wanted)
        missing = {topic: config for topic, config in wanted.items() if topic not in existing}
        if not missing:
            return frozenset()
        if settings.provision == "validate":
            names = ", ".join(sorted(missing))
            raise NotProvisioned(f"topics are missing, of {partitions} partitions each: {names}")
        new = [NewTopic(topic, partitions, replicas, topic_configs=dict(config)) for topic, config in missing.items()]
        created = set(missing)
        for topic, code, *_ in (await admin.create_topics(new)).topic_errors:
            error = for_code(code)
            if code and error is not TopicAlreadyExistsError:
                raise error(topic)
            if code:
                created.remove(topic)
        log.info("topics created", topics=sorted(created))
        if len(created) < len(missing):
            # Another worker has created topics in between, perhaps with another number of partitions.
            existing = await _check_partitions(admin, settings, wanted)
            if not existing.issuperset(wanted):
                raise Unavailable("topics of another worker are not visible yet")
    return frozenset(created)


async def _check_partitions(admin: AIOKafkaAdminClient, settings: Settings, wanted: Iterable[str]) -> set[str]:
    """Return the topics that exist. Raises ValueError for one of `wanted` with a wrong number of partitions."""
    existing = {topic: len(partitions) for topic, partitions in (await partitions_of_topics(admin)).items()}
    inputs = topics_with_prefix(settings.topic_prefix).inputs()
    for topic in wanted:
        partitions = existing.get(topic, settings.partitions)
        if topic in inputs and partitions > settings.partitions:
            log.warning("records are moved from partitions beyond the setting", topic=topic, partitions=partitions)
        elif partitions != settings.partitions:
            raise ValueError(f"{topic} was created with {partitions} partitions, not {settings.partitions}")
    return set(existing)


async def count_partitions(settings: Settings, topic: str) -> int:
    """Return the number of partitions of a topic, 0 for one that is missing. Raises Unavailable."""
    async with _available_admin(settings) as admin:
        return len((await partitions_of_topics(admin, [topic])).get(topic, ()))


async def committed_offsets(settings: Settings, group: str) -> Mapping[tuple[str, int], int]:
    """Return a consumer group's committed offsets by topic and partition; waits until Kafka answers."""
    while True:
        try:
            async with connected_admin(settings) as admin:
                offsets = await admin.list_consumer_group_offsets(group)
            return {(of.topic, of.partition): committed.offset for of, committed in offsets.items()}
        except (KafkaError, OSError) as problem:
            log.warning("committed offsets can't be read yet", problem=repr(problem))
            await asyncio.sleep(1)


SET_BY_TOPIC = 1
"""Kafka's `ConfigSource` of a value set on the topic itself; others are defaults."""

TopicSettings = Mapping[str, Mapping[str, str]]
"""Values by setting, by topic."""


async def correct_topic_settings(settings: Settings, wanted: TopicSettings) -> TopicSettings:
    """Correct settings of topics that lose or refuse records; return the changes.

    A changelog made with `cleanup.policy=delete` loses memories, a smaller limit refuses records, and the writer's
    timestamps refuse those of a worker whose clock is an hour ahead. Other settings, and topics that clients write to,
    stay: they belong to the operator. Raises Unavailable while Kafka does not answer, ValueError if it refuses,
    NotProvisioned where nothing may be changed.
    """
    async with _available_admin(settings) as admin:
        resources = [ConfigResource(ConfigResourceType.TOPIC, topic, configs=None) for topic in wanted]
        changed: dict[str, Mapping[str, str]] = {}
        complete: dict[str, Mapping[str, str]] = {}
        for response in await admin.describe_configs(resources):
            for code, _, _, topic, entries in response.resources:
                error = for_code(code)
                if error is TopicAuthorizationFailedError:
                    log.warning("settings of a topic may not be read, they are not checked", topic=topic)
                    continue
                if code:
                    # Do not replace all settings because of an empty description.
                    raise Unavailable(f"the settings of {topic} can't be read: {error.__name__}")
                present = {entry[0]: entry[1] for entry in entries}
                wrong = {
                    name: right for name, right in wanted[topic].items() if not is_right(name, present.get(name), right)
                }
                if wrong:
                    changed[topic] = wrong
                    # The request replaces all settings of the topic itself.
                    complete[topic] = {entry[0]: entry[1] for entry in entries if entry[3] == SET_BY_TOPIC} | wrong
        if complete and settings.provision == "validate":
            needs = (f"{topic} needs {dict(values)}" for topic, values in sorted(changed.items()))
            raise NotProvisioned("; ".join(needs))
        if complete:
            altered = [
                ConfigResource(ConfigResourceType.TOPIC, topic, dict(values)) for topic, values in complete.items()
            ]
            responses: list[Any] = await admin.alter_configs(altered)
            for code, message, _, topic in [resource for response in responses for resource in response.resources]:
                if code:
                    problem = f"{for_code(code).__name__} {message}"
                    raise ValueError(f"{topic} needs the settings {dict(complete[topic])}: {problem}")
            log.warning("settings of topics corrected", topics=changed)
        return changed


def is_right(name: str, present: str | None, wanted: str) -> bool:
    """True if a setting of a topic does no harm: limits of records may be higher, those of compaction lower."""
    if name == "max.message.bytes":
        return present is not None and int(present) >= int(wanted)
    if name == "max.compaction.lag.ms":
        return present is not None and int(present) <= int(wanted)
    return present == wanted


async def topics_of_deployment(settings: Settings) -> frozenset[str]:
    """Return the existing topics of a deployment, changelogs included, without `service`. Raises Unavailable."""
    topics = topics_with_prefix(settings.topic_prefix)
    named = {*topics.all()} - {topics.service}
    async with _available_admin(settings) as admin:
        every = await partitions_of_topics(admin)
    # By name, not by prefix: another deployment's prefix may start alike.
    changelogs = f"{group_id(settings)}-"
    return frozenset(name for name in every if name in named or name.startswith(changelogs))


async def delete_topics(settings: Settings, names: Collection[str]) -> int:
    """Delete topics; missing ones count. Return their number. Raises Unavailable."""
    async with _available_admin(settings, f"topics of {settings.topic_prefix} can't be deleted") as admin:
        response = await admin.delete_topics(list(names))
        for name, code in response.topic_error_codes:
            error = for_code(code)
            if code and error is not UnknownTopicOrPartitionError:
                raise error(name)
    return len(names)


GROUP_ID_NOT_FOUND = 69
"""Kafka's error code for a group without members and commits; brokers up to 3.9 describe an empty one."""


async def hosts_of_members(settings: Settings, group: str) -> Mapping[str, str]:
    """Return the address of each member by its member id. Raises Unavailable."""
    async with _available_admin(settings, f"the group {group} can't be described") as admin:
        (response,) = await admin.describe_consumer_groups([group])
        (described,) = response.to_object()["groups"]
        code = described["error_code"]
        if code and code != GROUP_ID_NOT_FOUND:
            raise for_code(code)(group)
    return {member["member_id"]: member["client_host"].removeprefix("/") for member in described["members"]}


NULL_KEY = object()
"""Stands for the missing key of a record without a value. Such records exist in Kafka, and their dead letters are such
records too; aiokafka rejects them before it serialises the key."""

DeliveryFuture = asyncio.Future[object]
"""Done when the broker has acknowledged a record, or the producer has given it up."""


def create_producer(
    connection: KafkaConnection,
    *,
    enable_idempotence: bool,
    request_timeout_ms: int,
    compression: str | None = None,
    fence: GroupFence | None = None,
) -> AIOKafkaProducer:
    """Create a producer of the worker, not started. Its requests wait at the `fence`."""
    producer = AIOKafkaProducer(
        **connection,
        acks="all",
        # `NULL_KEY` becomes no key.
        key_serializer=lambda key: key if isinstance(key, bytes) else None,
        enable_idempotence=enable_idempotence,
        max_request_size=MAX_OUTPUT_BYTES,
        max_batch_size=256 * 1024,
        request_timeout_ms=request_timeout_ms,
        compression_type=compression,
    )
    return producer if fence is None else fence.guard(producer)


async def hand_over(producer: AIOKafkaProducer, out: Outgoing) -> DeliveryFuture:
    """Hand a record to a producer; waits for the metadata of its topic, and while its batch is full."""
    delivery: DeliveryFuture = await producer.send(
        out.topic,
        out.value,
        key=NULL_KEY if out.key is None and out.value is None else out.key,
        partition=out.partition,
        timestamp_ms=out.timestamp_ms,
        headers=list(out.headers),
    )
    return delivery
