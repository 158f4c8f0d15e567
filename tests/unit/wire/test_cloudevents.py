"""CloudEvents attributes on the worker's records, as the reference library reads them."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka
from cloudevents.core.formats.json import JSONFormat

from schemas.messages.records import Outgoing
from streams.topics import topics_with_prefix
from streams.wire.cloudevents import CloudEvents, described_topics

AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
TOPICS = topics_with_prefix("memory.")
EVENTS = CloudEvents("/memory/eu", described_topics(TOPICS))
BOUNDARY = Outgoing(TOPICS.boundaries, b"u1", b'{"schema":"boundary.v1","memories":3}', (("traceparent", b"00-1"),))


def read(out: Outgoing) -> Any:
    described = EVENTS.describe(out, AT)
    headers = {name: value or b"" for name, value in described.headers}
    return from_kafka(KafkaMessage(headers=headers, key=out.key, value=out.value or b""), JSONFormat())


def test_the_type_is_the_schema_of_the_record() -> None:
    assert read(BOUNDARY).get_type() == "modestream.boundary.v1"


def test_the_source_is_that_of_the_deployment() -> None:
    assert read(BOUNDARY).get_source() == "/memory/eu"


def test_the_time_is_that_of_writing() -> None:
    assert read(BOUNDARY).get_time() == AT


def test_the_data_is_the_record() -> None:
    assert read(BOUNDARY).get_data() == {"schema": "boundary.v1", "memories": 3}


def test_the_same_record_again_has_the_same_id() -> None:
    assert read(BOUNDARY).get_id() == read(BOUNDARY).get_id()


def test_another_record_has_another_id() -> None:
    changed = replace(BOUNDARY, value=b'{"schema":"boundary.v1","memories":4}')
    assert read(BOUNDARY).get_id() != read(changed).get_id()


def test_another_key_has_another_id() -> None:
    assert read(BOUNDARY).get_id() != read(replace(BOUNDARY, key=b"u2")).get_id()


def test_a_tombstone_has_a_type() -> None:
    described = EVENTS.describe(replace(BOUNDARY, value=None), AT)
    assert dict(described.headers)["ce_type"] == b"modestream.tombstone.v1"


def test_other_headers_stay() -> None:
    assert EVENTS.describe(BOUNDARY, AT).headers[0] == ("traceparent", b"00-1")


def test_dead_letters_stay_as_they_are() -> None:
    refused = Outgoing(TOPICS.dead_letters, None, b"not JSON")
    assert EVENTS.describe(refused, AT) is refused
