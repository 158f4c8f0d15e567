"""Stages of the worker by module, and the stage of a sampled stack."""

from collections.abc import Iterable, Sequence
from functools import cache

OTHER = "other"
"""The stage of a stack that no pattern matches."""

STAGES: dict[str, tuple[str, ...]] = {
    "read from Kafka": (
        "aiokafka/consumer/",
        "faust/transport/drivers/",
        "mode/threads.py:WorkerThread.run",
        "modestream_client/kafka/log_reader.py",
        "streams/runtime/consumer",
        "streams/runtime/request_reader.py",
    ),
    "Faust's own layers": ("faust/", "mode/", "streams/runtime/"),
    "admission and decoding": (
        "agents/commands/admit.py",
        "agents/rules/access/",
        "schemas/messages/decoding.py",
        "streams/flow/requests/",
        "streams/wire/",
    ),
    "analysis of text": (
        "agents/rules/cues/",
        "agents/rules/interaction/",
        "agents/rules/items/",
        "agents/rules/query/",
        "agents/rules/text/",
        "agents/understanding/",
        "streams/flow/steps/embed.py:_classify",
    ),
    "records and changelog": (
        "agents/memory/",
        "agents/rules/memory/",
        "faust/stores/",
        "faust/tables/",
        "faust/transport/producer.py",
        "streams/flow/stores.py",
        "streams/runtime/awaited_table.py",
        "streams/partition/",
        "streams/runtime/fast_start_worker.py:TableRecovery",
        "streams/tables/",
    ),
    "lexical index": ("agents/retrieval/hits.py:LexicalFeatures", "agents/rules/index/", "streams/adapters/lexical/"),
    "embedding requests": ("agents/embedding/", "agents/modes/", "streams/adapters/embedding/", "streams/batching.py"),
    "vector index": (
        "agents/embedding/embed.py:Embed._upsert",
        "agents/embedding/embed.py:Embed.write",
        "agents/retrieval/vector_search.py",
        "agents/retrieval/vector_search.py",
        "streams/adapters/vectors/",
    ),
    "events between agents": (
        "streams/adapters/kafka/publisher.py",
        "streams/flow/requests/channel.py:RecentEvents",
        "streams/flow/requests/channel.py:derived_events",
        "streams/flow/requests/channel.py:event_out",
        "streams/flow/steps/embed.py:ReportEmbedded._records",
        "streams/adapters/kafka/reply_writer.py:Bursts",
    ),
    "acknowledgement and commits": (
        "aiokafka/consumer/group_coordinator.py",
        "streams/fair_queue.py",
        "streams/flow/boundary_changes.py",
        "streams/flow/job_log.py",
        "streams/flow/pipelines/",
        "streams/flow/publisher.py",
        "streams/flow/steps/",
        "streams/flow/text_reading.py",
        "streams/flow/turns_",
        "streams/runtime/delivery.py",
    ),
    "ranking": ("agents/retrieval/", "agents/rules/clustering/", "agents/rules/ranking/"),
    "reply": (
        "agents/retrieval/hits.py",
        "agents/rules/answer/",
        "schemas/messages/replies.py",
        "streams/adapters/kafka/publisher.py:KafkaPublisher.reply",
        "streams/adapters/kafka/reply_",
        "streams/adapters/kafka/reply_writer.py",
        "streams/flow/requests/channel.py:Replies",
    ),
    "asyncio and aiokafka": (),
    OTHER: ("agents/", "streams/"),
}
"""Stages in the order of the printed table, with beginnings of `FILE:FUNCTION`. The longest match decides."""

SHARED = (
    "faust/serializers/",
    "faust/types/",
    "mode/services.py:Service._execute_task",
    "mode/threads.py:ServiceThread",
    "mode/utils/",
    "mode/worker.py",
    "streams/__main__.py",
    "streams/adapters/kafka/clients.py",
    "streams/backoff.py",
    "streams/flow/death_counts.py",
    "streams/flow/steps/remember.py:in_slices",
    "streams/runtime/fast_start_worker.py:TableRecovery",
    "streams/runtime/fence.py",
    "streams/runtime/kafka_app.py",
    "streams/worker.py",
)
"""Frames that say nothing of the work: the root of every stack, and helpers of many stages. Their caller decides."""

LIBRARIES = {
    "aiokafka/": "asyncio and aiokafka",
    "asyncio/": "asyncio and aiokafka",
    "mode/worker.py": "asyncio and aiokafka",
    "streams/runtime/fence.py": "asyncio and aiokafka",
    "streams/adapters/kafka/clients.py": "asyncio and aiokafka",
    "faust/": "Faust's own layers",
    "mode/": "Faust's own layers",
    "streams/runtime/": "Faust's own layers",
    "streams/flow/": "acknowledgement and commits",
}
"""What decides where no other frame does. The event loop's own code shows as its caller in `mode/worker.py`."""

_PATTERNS: dict[str, str | None] = {
    **{pattern: stage for stage, patterns in STAGES.items() for pattern in patterns},
    **dict.fromkeys(SHARED),
}


def stage_of(stack: Sequence[str]) -> str:
    """Return the stage of a stack, root first, by its first matching frame from the leaf up."""
    leaf_first = tuple(reversed(stack))
    return _first(map(_stage_of_frame, leaf_first)) or _first(map(_stage_of_library, leaf_first)) or OTHER


def _first(stages: Iterable[str | None]) -> str | None:
    return next((stage for stage in stages if stage is not None), None)


@cache
def _stage_of_frame(frame: str) -> str | None:
    return _longest_match(frame, _PATTERNS)


@cache
def _stage_of_library(frame: str) -> str | None:
    return _longest_match(frame, LIBRARIES)


def _longest_match(frame: str, patterns: dict[str, str] | dict[str, str | None]) -> str | None:
    """Return the stage of the longest pattern that `FUNCTION (FILE:LINE)` begins with, as `FILE:FUNCTION`."""
    function, _, place = frame.rpartition(" (")
    located = f"{place.rstrip(')').rpartition(':')[0]}:{function}"
    longest = max((pattern for pattern in patterns if located.startswith(pattern)), key=len, default=None)
    return None if longest is None else patterns[longest]
