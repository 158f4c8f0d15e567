"""The AsyncAPI 3.0.0 document of a deployment: its public topics and their messages.

It is generated from the models and the input channels, so that it is always complete.
"""

from typing import Any

from schemas.version import VERSION
from streams.api_docs.channels import (
    BINDING_VERSION,
    BOUNDARY,
    DEAD_LETTER,
    REPLY_TO,
    RUN,
    build_channels,
    channel_name,
    channel_of,
)
from streams.api_docs.json_schemas import components, wire_payloads
from streams.api_docs.messages import JSON_TYPE, build_message_components
from streams.api_docs.payloads import reply_name
from streams.api_docs.wire_headers import dead_letter_headers, reply_headers, request_headers
from streams.channels import InputChannels, input_channels
from streams.flow.requests.channel import Channel
from streams.settings import Settings
from streams.topics import Topics, group_id, topics_with_prefix

Json = dict[str, Any]


def build_asyncapi(settings: Settings) -> Json:
    """Build the document from the settings' addresses, topic names, partitions and scope model."""
    topics = topics_with_prefix(settings.topic_prefix)
    inputs = input_channels(topics, settings.scope_model)
    kinds = list(dict.fromkeys(kind for channel in inputs.public() for kind in channel.kinds))
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "modestream",
            "version": VERSION,
            "description": "Conversation memory: turns in, memories out over request and reply.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": JSON_TYPE,
        "servers": _servers(settings),
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
        },
        "components": {
            "messages": build_message_components(kinds, settings.scope_model.boundary_fields),
            "schemas": {**components(wire_payloads(settings)), **_headers(topics)},
            "correlationIds": {"correlation_id": {"location": "$message.header#/correlation_id"}},
        },
    }


def _servers(settings: Settings) -> Json:
    security = settings.kafka_security
    protocol = "kafka-secure" if security is not None and security.uses_tls else "kafka"
    addresses = settings.bootstrap_servers
    return {f"kafka-{number}": {"host": one, "protocol": protocol} for number, one in enumerate(addresses, 1)}


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
        "messages": [_message(name, kind)],
        "reply": {
            "address": {"location": "$message.header#/reply_to", "description": "Without it there is no reply."},
            "channel": _channel(REPLY_TO),
            "messages": [_message(REPLY_TO, reply_name(kind))],
        },
        "bindings": {"kafka": {"groupId": group, "bindingVersion": BINDING_VERSION}},
    }


def _send(settings: Settings, topic: str, names: list[str]) -> Json:
    name = channel_name(settings, topic)
    return {"action": "send", "channel": _channel(name), "messages": [_message(name, one) for one in names]}


def _channel(name: str) -> Json:
    return {"$ref": f"#/channels/{name}"}


def _message(channel: str, name: str) -> Json:
    return {"$ref": f"#/channels/{channel}/messages/{name}"}


def _headers(topics: Topics) -> Json:
    return {
        "request-headers": request_headers(topics.replies),
        "reply-headers": reply_headers(),
        "dead-letter-headers": dead_letter_headers(),
    }
