"""The members of a consumer group, as its coordinator knows them."""

from collections.abc import Mapping

from aiokafka.errors import KafkaError, for_code

from schemas.failures import Unavailable
from streams.adapters.kafka.admin_connection import connected_admin
from streams.settings import Settings

GROUP_ID_NOT_FOUND = 69
"""Kafka's error code for a group without members and commits; brokers up to 3.9 describe an empty one."""


async def hosts_of_members(settings: Settings, group: str) -> Mapping[str, str]:
    """Return the address of each member by its member id. Raises Unavailable."""
    try:
        async with connected_admin(settings) as admin:
            (response,) = await admin.describe_consumer_groups([group])
        (described,) = response.to_object()["groups"]
        code = described["error_code"]
        if code and code != GROUP_ID_NOT_FOUND:
            raise for_code(code)(group)
    except (KafkaError, OSError) as problem:
        raise Unavailable(f"the group {group} can't be described: {problem!r}") from problem
    return {member["member_id"]: member["client_host"].removeprefix("/") for member in described["members"]}
