"""The channels of an AsyncAPI document: every public topic, with its settings in Kafka and the messages on it."""

from typing import Any

from streams.api_docs.payloads import reply_name
from streams.channels import InputChannels
from streams.flow.requests.channel import Channel
from streams.settings import Settings
from streams.topics import Topics, topic_config

BINDING_VERSION = "0.5.0"
"""The version of AsyncAPI's Kafka bindings that is meant."""

REPLY_TO = "reply-to"
"""The channel without an address of its own: the topic that a request's header names."""

DEAD_LETTER = "dead-letter"
"""The message that a dead letter is."""

Json = dict[str, Any]


def build_channels(settings: Settings, topics: Topics, asked: InputChannels) -> Json:
    """Every channel by its name, which is the topic's without the prefix."""
    answers = [reply_name(kind) for channel in asked.public() for kind in channel.kinds]
    held = {channel.topic: [*channel.kinds] for channel in asked.public()}
    held |= {topics.replies: answers, topics.dead_letters: [DEAD_LETTER]}
    found: Json = {
        channel_name(settings, topic): {
            "address": topic,
            "messages": message_refs(names),
            "bindings": {"kafka": _binding(settings, topics, topic)},
        }
        for topic, names in held.items()
    }
    found[REPLY_TO] = {
        "address": None,
        "description": f"The topic that a request asks its reply on: {topics.replies}, or {topics.replies}.<name>.",
        "messages": message_refs(answers),
    }
    return found


def channel_name(settings: Settings, topic: str) -> str:
    """What the channel of a topic is called."""
    return topic.removeprefix(settings.topic_prefix)


def channel_of(asked: InputChannels, kind: str) -> Channel:
    """The channel that a kind of request is sent on."""
    return next(channel for channel in asked.public() if kind in channel.kinds)


def message_refs(names: list[str]) -> Json:
    """References to messages of the components."""
    return {name: {"$ref": f"#/components/messages/{name}"} for name in names}


def _binding(settings: Settings, topics: Topics, topic: str) -> Json:
    kept = topic_config(topics, topic)
    return {
        "topic": topic,
        "partitions": settings.partitions,
        "replicas": settings.replication_factor,
        "topicConfiguration": {
            "cleanup.policy": [kept["cleanup.policy"]],
            "retention.ms": int(kept["retention.ms"]),
            "max.message.bytes": int(kept["max.message.bytes"]),
        },
        "bindingVersion": BINDING_VERSION,
    }
