"""The heartbeat with a `group.instance.id`, Kafka's version 3.

aiokafka 0.14 sends versions 0 and 1 without it: a static member whose place is taken gets the error of an expired
session. With version 3 it gets the error of a fenced member.
"""

from typing import Any

from aiokafka.protocol.api import Request, RequestStruct
from aiokafka.protocol.group import HeartbeatResponse_v1
from aiokafka.protocol.types import Int32, Schema, String

FENCED_INSTANCE_ID = 82
"""Kafka's error code for a static member whose place is taken; aiokafka 0.14 does not know it."""


class HeartbeatResponseV3(HeartbeatResponse_v1):  # type: ignore[misc]
    """The response to `HeartbeatRequestV3`."""

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
        """Return the request of a version."""
        return request_struct_class(*self._fields)
