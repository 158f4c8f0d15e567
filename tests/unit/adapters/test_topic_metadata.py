"""Lookups of topics, which create none."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.metadata import MetadataRequest, MetadataRequest_v4, MetadataRequest_v5

from streams.adapters.kafka.clients import partitions_of_topics


class RecordingAdmin:
    """Keeps its requests; knows a topic with two partitions, and one that is missing."""

    def __init__(self) -> None:
        self.requests: list[MetadataRequest] = []

    async def _send_request(self, request: MetadataRequest) -> Any:
        self.requests.append(request)
        known = {"topic": "known", "partitions": [{"partition": 0}, {"partition": 1}]}
        return SimpleNamespace(to_object=lambda: {"topics": [known, {"topic": "missing", "partitions": []}]})


@pytest.mark.parametrize("version", [MetadataRequest_v4, MetadataRequest_v5])
async def test_lookup_of_a_topic_asks_the_broker_to_create_none(version: Any) -> None:
    admin = RecordingAdmin()
    found = await partitions_of_topics(cast("AIOKafkaAdminClient", admin), ["known", "missing"])
    assert found == {"known": {0, 1}, "missing": frozenset()}
    [request] = admin.requests
    assert request.build(version).to_object() == {"topics": ["known", "missing"], "allow_auto_topic_creation": False}
