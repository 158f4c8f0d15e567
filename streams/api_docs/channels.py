"""The channels of the AsyncAPI document: every public topic with its Kafka settings and its messages."""

from typing import Any

from streams.api_docs.payloads import reply_name
from streams.channels import InputChannels
from streams.flow.requests.channel import Channel
from streams.settings import Settings
from streams.topics import Topics, topic_config

BINDING_VERSION = "0.5.0"
"""The version of AsyncAPI's Kafka bindings."""

REPLY_TO = "reply-to"
"""The channel without a fixed address: the topic in a request's header."""

DEAD_LETTER = "dead-letter"
"""The name of the message."""

BOUNDARY = "boundary.v1"
"""The name of the message that tells of a boundary."""

RUN = "run.v1"
"""The name of the message that tells how a request went."""

Json = dict[str, Any]


def build_channels(settings: Settings, topics: Topics, inputs: InputChannels) -> Json:
    """Build every channel by its name, which is the topic's without the prefix."""
    replies = list(dict.fromkeys(reply_name(kind) for channel in inputs.public() for kind in channel.kinds))
    messages = {channel.topic: [*channel.kinds] for channel in inputs.public()}
    messages |= {topics.replies: replies, topics.dead_letters: [DEAD_LETTER], topics.boundaries: [BOUNDARY]}
    messages[topics.runs] = [RUN]
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
    """Return the name of a topic's channel."""
    return topic.removeprefix(settings.topic_prefix)


def channel_of(inputs: InputChannels, kind: str) -> Channel:
    """Return the channel of a kind of request; of commands that which takes all of them."""
    return next(channel for channel in reversed(inputs.public()) if kind in channel.kinds)


def message_refs(names: list[str]) -> Json:
    """Return references to messages of the components."""
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
