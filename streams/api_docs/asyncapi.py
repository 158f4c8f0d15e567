"""The AsyncAPI 3.0.0 document of a deployment, and the JSON Schema of every value on its public topics.

Both are generated from the models and the input channels, so that they are always complete.
"""

import re
from collections.abc import Iterable
from typing import Any

from modestream_client.boundary import BoundaryFields
from modestream_client.runs import Run
from pydantic import create_model
from pydantic.json_schema import models_json_schema

from agents.rules.access.grants import PRINCIPAL_HEADER
from schemas.messages.published import Boundary, LoggedContext, Rating, Receipt
from schemas.messages.records import REQUEST_ID_HEADER
from schemas.version import VERSION
from streams.api_docs.payloads import Payload, WireSchema, build_payloads, component_name, reply_name
from streams.channels import InputChannels, input_channels
from streams.flow.requests.channel import Channel
from streams.flow.runs.recorder import RUN_HEADER
from streams.flow.steps.answer_with_model import STREAM_HEADER
from streams.observability.tracing import TRACEPARENT
from streams.settings import Settings
from streams.topics import Topics, group_id, topic_config, topics_with_prefix
from streams.wire.reply_address import DIALECTS, MAX_TOPIC_CHARS

BINDING_VERSION = "0.5.0"
"""The version of AsyncAPI's Kafka bindings."""

REPLY_TO = "reply-to"
"""The channel without a fixed address: the topic in a request's header."""

DEAD_LETTER = "dead-letter"

BOUNDARY = "boundary.v1"
"""The name of the message about a boundary."""

CONTEXT, RATING = "context.v1", "rating.v1"
"""The names of the messages about contexts: the basis of each, and callers' ratings."""

RECEIPT = "receipt.v1"
"""The name of the message about a forgetting."""

RUN = "run.v1"
"""The name of the message about a run."""

COMPONENTS = "#/components/schemas/{model}"
"""The location of schemas in an AsyncAPI document."""

JSON_TYPE = "application/json"

Json = dict[str, Any]


def build_channels(settings: Settings, topics: Topics, inputs: InputChannels) -> Json:
    """Build every channel by its name, which is the topic's without the prefix."""
    replies = list(dict.fromkeys(reply_name(kind) for channel in inputs.public() for kind in channel.kinds))
    messages = {channel.topic: [*channel.kinds] for channel in inputs.public()}
    messages |= {topics.replies: replies, topics.dead_letters: [DEAD_LETTER], topics.boundaries: [BOUNDARY]}
    messages[topics.runs] = [RUN]
    messages |= {topics.contexts: [CONTEXT, RATING], topics.receipts: [RECEIPT]}
    channels: Json = {
        channel_name(settings, topic): {
            "address": topic,
            "messages": message_refs(names),
            "bindings": {"kafka": _binding(settings, topics, topic)},
        }
        for topic, names in messages.items()
    }
    channels[REPLY_TO] = {
        "address": None,
        "description": f"The reply topic of a request: {topics.replies}, or {topics.replies}.<name>.",
        "messages": message_refs(replies),
    }
    return channels


def channel_name(settings: Settings, topic: str) -> str:
    return topic.removeprefix(settings.topic_prefix)


def channel_of(inputs: InputChannels, kind: str) -> Channel:
    """Return the channel of a kind of request; of commands that which takes all of them."""
    return next(channel for channel in reversed(inputs.public()) if kind in channel.kinds)


def message_refs(names: list[str]) -> Json:
    return {name: {"$ref": f"#/components/messages/{name}"} for name in names}


def _binding(settings: Settings, topics: Topics, topic: str) -> Json:
    config = topic_config(topics, topic)
    return {
        "topic": topic,
        "partitions": settings.partitions,
        "replicas": settings.replication_factor,
        "topicConfiguration": {
            "cleanup.policy": [config["cleanup.policy"]],
            "retention.ms": int(config.get("retention.ms", -1)),
            "max.message.bytes": int(config["max.message.bytes"]),
        },
        "bindingVersion": BINDING_VERSION,
    }


def build_json_schemas(settings: Settings) -> Json:
    """Build the schemas of requests (`turn.v1`), of the reply to each (`turn.v1.reply`), of any reply (`reply.v1`)."""
    return {
        payload.name: {
            "$schema": WireSchema.schema_dialect,
            **payload.model.model_json_schema(mode=payload.mode, schema_generator=WireSchema),
            "title": payload.name,
        }
        for payload in wire_payloads(settings)
    }


def wire_payloads(settings: Settings) -> list[Payload]:
    """Return the payloads on the public topics of a deployment."""
    inputs = input_channels(topics_with_prefix(settings.topic_prefix), settings.scope_model)
    boundary = create_model(component_name(BOUNDARY), __base__=Boundary, __doc__=Boundary.__doc__)
    # Fields without a value are left out, as in what is read.
    told = [
        Payload(name, create_model(component_name(name), __base__=model, __doc__=model.__doc__), "validation")
        for name, model in ((RUN, Run), (CONTEXT, LoggedContext), (RATING, Rating), (RECEIPT, Receipt))
    ]
    return [*build_payloads(inputs.public()), Payload(BOUNDARY, boundary, "serialization"), *told]


def components(payloads: list[Payload]) -> Json:
    """Build the schemas of payloads and of all that they refer to, side by side."""
    models = [(payload.model, payload.mode) for payload in payloads]
    _, schemas = models_json_schema(models, ref_template=COMPONENTS, schema_generator=WireSchema)
    components: Json = schemas["$defs"]
    return components | {each.component: {**components[each.component], "title": each.name} for each in payloads}


def build_message_components(kinds: Iterable[str], boundary: BoundaryFields) -> Json:
    """Build the messages of these kinds of requests, of the reply to each, and of what the worker tells besides.

    `boundary` are the boundary fields of the deployment's scopes.
    """
    joined = "" if len(boundary) == 1 else ", joined by /"
    key = (
        f"The {' and '.join(boundary)} of the scope, with % and / percent-encoded{joined}. "
        "The partition is murmur2 of it, as in Kafka's Java client."
    )
    messages: Json = {
        DEAD_LETTER: {
            "name": DEAD_LETTER,
            "summary": "A record that could not be processed, with its key, value and headers unchanged.",
            "contentType": "application/octet-stream",
            "headers": _schema("dead-letter-headers"),
            "payload": {"description": "Any bytes, or none."},
            "bindings": _keyed("The key of the record, unchanged."),
        },
        BOUNDARY: {
            "name": BOUNDARY,
            "summary": "What there is of a user: the last record of a key counts. "
            "A tombstone tells that it is forgotten.",
            "contentType": JSON_TYPE,
            "payload": _schema(component_name(BOUNDARY)),
            "bindings": _keyed(key),
        },
        RUN: {
            "name": RUN,
            "summary": "How a request went. "
            "Without a key it is of no user. A tombstone tells that the user is forgotten.",
            "contentType": JSON_TYPE,
            "payload": _schema(component_name(RUN)),
            "bindings": _keyed(key),
        },
    }
    about_contexts = {
        CONTEXT: "What a context or an answer was based on. A tombstone tells that the user is forgotten.",
        RATING: "Which memories of a context were of use.",
    }
    for name, summary in about_contexts.items():
        messages[name] = {
            "name": name,
            "summary": summary,
            "contentType": JSON_TYPE,
            "payload": _schema(component_name(name)),
            "bindings": _keyed(key),
        }
    messages[RECEIPT] = {
        "name": RECEIPT,
        "summary": "That something was forgotten, and when nothing of it was left: the last record of a key counts.",
        "contentType": JSON_TYPE,
        "payload": _schema(component_name(RECEIPT)),
        "bindings": _keyed("The id of the receipt, in the partition of what was forgotten."),
    }
    for kind in kinds:
        messages[kind] = _message(kind, "request-headers", key)
        messages[reply_name(kind)] = _message(reply_name(kind), "reply-headers", "The key of the request, unchanged.")
    return messages


def _message(name: str, headers: str, key: str) -> Json:
    return {
        "name": name,
        "contentType": JSON_TYPE,
        "headers": _schema(headers),
        "payload": _schema(component_name(name)),
        "correlationId": {"$ref": "#/components/correlationIds/correlation_id"},
        "bindings": _keyed(key),
    }


def _schema(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _keyed(description: str) -> Json:
    return {"kafka": {"key": {"type": "string", "description": description}, "bindingVersion": BINDING_VERSION}}


DEAD_LETTER_HEADERS: Json = {
    "dead_letter_topic": {"type": "string", "description": "The topic of the record."},
    "dead_letter_partition": {"type": "string", "pattern": "^[0-9]+$"},
    "dead_letter_offset": {"type": "string", "pattern": "^[0-9]+$"},
    "dead_letter_code": {"type": "string", "description": "An error code as in replies, or `poison`."},
    "dead_letter_reason": {"type": "string"},
    "dead_letter_time": {"type": "string", "format": "date-time"},
}


def request_headers(replies: str) -> Json:
    """Build the headers of a request, all optional, in each dialect; `replies` is the shared reply topic."""
    headers: Json = {
        "deadline": {
            "type": "string",
            "pattern": "^[0-9]{1,20}$",
            "description": "Time at which the caller stops waiting, in milliseconds since the epoch.",
        },
        TRACEPARENT: {"type": "string", "description": "The trace of the request, by W3C; an invalid one is ignored."},
        REQUEST_ID_HEADER: {
            "type": "string",
            "description": "An id for the worker's log lines; an invalid one is ignored.",
        },
        RUN_HEADER: {"type": "string", "description": "`1`: record the run of this request."},
        STREAM_HEADER: {"type": "string", "description": "`1`: partial replies before that to an `answer.v1`."},
        PRINCIPAL_HEADER: {"type": "string", "description": "The caller, for a deployment with an authorization file."},
    }
    for dialect in DIALECTS:
        topic = {
            "type": "string",
            "maxLength": MAX_TOPIC_CHARS,
            "pattern": "^" + re.escape(replies).replace(r"\-", "-") + r"(\.[A-Za-z0-9._-]+)?$",
            "description": f"The topic of the reply: {replies}, or {replies}.<name>.",
        }
        decimal = {"type": "string", "pattern": "^[0-9]{1,20}$", "description": "The partition of the reply."}
        bytes_ = {"type": "string", "description": "The partition of the reply, four bytes, big-endian."}
        partition = decimal if dialect.partition_encoding == "decimal" else bytes_
        headers |= {dialect.topic: topic, dialect.correlation: _CORRELATION, dialect.partition: partition}
    return {"type": "object", "properties": headers}


def reply_headers() -> Json:
    """Build the headers of a reply: the correlation id under the name in the request."""
    names = [dialect.correlation for dialect in DIALECTS]
    return {"type": "object", "properties": dict.fromkeys(names, _CORRELATION), "maxProperties": 1}


def dead_letter_headers() -> Json:
    """Build the headers that a dead letter adds to those of the record."""
    return {"type": "object", "properties": DEAD_LETTER_HEADERS, "required": sorted(DEAD_LETTER_HEADERS)}


_CORRELATION: Json = {"type": "string", "description": "Any bytes; returned unchanged under the same name."}


def build_asyncapi(settings: Settings) -> Json:
    """Build the document from the settings' addresses, topic names, partitions and scope model."""
    topics = topics_with_prefix(settings.topic_prefix)
    inputs = input_channels(topics, settings.scope_model)
    kinds = list(dict.fromkeys(kind for channel in inputs.public() for kind in channel.kinds))
    security = settings.kafka_security
    protocol = "kafka-secure" if security is not None and security.uses_tls else "kafka"
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "modestream",
            "version": VERSION,
            "description": "Conversation memory: turns in, memories out over request and reply.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": JSON_TYPE,
        "servers": {
            f"kafka-{number}": {"host": host, "protocol": protocol}
            for number, host in enumerate(settings.bootstrap_servers, 1)
        },
        "channels": build_channels(settings, topics, inputs),
        "operations": {
            **{
                _operation_name(settings, inputs, channel, kind): _receive(settings, channel, kind)
                for channel in inputs.public()
                for kind in channel.kinds
            },
            "reply": _send(settings, topics.replies, [reply_name(kind) for kind in kinds]),
            "dead_letter": _send(settings, topics.dead_letters, [DEAD_LETTER]),
            "boundary": _send(settings, topics.boundaries, [BOUNDARY]),
            "run": _send(settings, topics.runs, [RUN]),
            "context": _send(settings, topics.contexts, [CONTEXT, RATING]),
            "receipt": _send(settings, topics.receipts, [RECEIPT]),
        },
        "components": {
            "messages": build_message_components(kinds, settings.scope_model.boundary_fields),
            "schemas": {
                **components(wire_payloads(settings)),
                "request-headers": request_headers(topics.replies),
                "reply-headers": reply_headers(),
                "dead-letter-headers": dead_letter_headers(),
            },
            "correlationIds": {"correlation_id": {"location": "$message.header#/correlation_id"}},
        },
    }


def _operation_name(settings: Settings, inputs: InputChannels, channel: Channel, kind: str) -> str:
    """Return the name of the kind; of commands on the topic of questions, with the topic's before it."""
    name = kind.partition(".")[0]
    return name if channel is channel_of(inputs, kind) else f"{channel_name(settings, channel.topic)}_{name}"


def _receive(settings: Settings, channel: Channel, kind: str) -> Json:
    """Describe how the worker handles one kind of request."""
    name = channel_name(settings, channel.topic)
    group = {"type": "string", "const": group_id(settings)}
    return {
        "action": "receive",
        "channel": _channel(name),
        "messages": [_message_ref(name, kind)],
        "reply": {
            "address": {"location": "$message.header#/reply_to", "description": "Without it there is no reply."},
            "channel": _channel(REPLY_TO),
            "messages": [_message_ref(REPLY_TO, reply_name(kind))],
        },
        "bindings": {"kafka": {"groupId": group, "bindingVersion": BINDING_VERSION}},
    }


def _send(settings: Settings, topic: str, names: list[str]) -> Json:
    name = channel_name(settings, topic)
    return {"action": "send", "channel": _channel(name), "messages": [_message_ref(name, message) for message in names]}


def _channel(name: str) -> Json:
    return {"$ref": f"#/channels/{name}"}


def _message_ref(channel: str, name: str) -> Json:
    return {"$ref": f"#/channels/{channel}/messages/{name}"}
