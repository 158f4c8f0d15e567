import pytest

from schemas.failures import Rejected
from schemas.messages.records import Headers, Record
from schemas.messages.replies import ReplyAddress
from streams.wire.reply_address import deadline_ms, parse_reply_address, with_reply_partition
from tests.builders.turns import record

REPLIES = "memory.replies"


def request_with(*headers: tuple[str, bytes | None]) -> Record:
    return record(headers=headers)


def address_of(sent: Record) -> ReplyAddress | None:
    return with_reply_partition(parse_reply_address(sent, REPLIES), sent)


DIALECTS: dict[str, tuple[Headers, ReplyAddress]] = {
    "ours": (
        (("reply_to", b"memory.replies"), ("correlation_id", b"\x00\xff"), ("reply_partition", b"3")),
        ReplyAddress(REPLIES, 3, ("correlation_id", b"\x00\xff")),
    ),
    "Spring's": (
        (
            ("kafka_replyTopic", b"memory.replies.app"),
            ("kafka_correlationId", b"c"),
            ("kafka_replyPartition", b"\x00\x00\x01\x02"),
        ),
        ReplyAddress("memory.replies.app", 258, ("kafka_correlationId", b"c")),
    ),
    "SmallRye's": (
        (
            ("REPLY_TOPIC", b"memory.replies.a_b-c.d"),
            ("REPLY_CORRELATION_ID", b"c"),
            ("REPLY_PARTITION", b"\x00\x00\x00\x02"),
        ),
        ReplyAddress("memory.replies.a_b-c.d", 2, ("REPLY_CORRELATION_ID", b"c")),
    ),
    "the topic alone": ((("reply_to", b"memory.replies"),), ReplyAddress(REPLIES)),
    "ours and another": (
        (("REPLY_TOPIC", b"memory.replies.x"), ("REPLY_CORRELATION_ID", b"x"), ("reply_to", b"memory.replies")),
        ReplyAddress(REPLIES),
    ),
    "the topic in ours, the rest in another": (
        (("reply_to", b"memory.replies"), ("kafka_correlationId", b"c"), ("kafka_replyPartition", b"\x00\x00\x00\x02")),
        ReplyAddress(REPLIES, 2, ("kafka_correlationId", b"c")),
    ),
    "the topic in another, the rest in ours": (
        (("REPLY_TOPIC", b"memory.replies"), ("correlation_id", b""), ("reply_partition", b"1")),
        ReplyAddress(REPLIES, 1, ("correlation_id", b"")),
    ),
    "a partition that no topic has": (
        (("reply_to", b"memory.replies"), ("reply_partition", b"9223372036854775807")),
        ReplyAddress(REPLIES, 2**63 - 1),
    ),
    "a header twice": ((("reply_to", b"memory.replies"), ("reply_to", b"elsewhere")), ReplyAddress(REPLIES)),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_each_dialect_is_parsed(name: str) -> None:
    headers, address = DIALECTS[name]
    assert address_of(request_with(*headers)) == address


def test_no_address_without_a_reply_topic() -> None:
    assert address_of(request_with(("correlation_id", b"c"), ("reply_partition", b"nonsense"))) is None


@pytest.mark.parametrize(
    "topic",
    [
        None,
        b"",
        b"memory.turns",
        b"memory.dead-letters",
        b"memory.repliesx",
        b"memoryxreplies",
        b"memory.replies.",
        b"memory.replies.a b",
        b"memory.replies\n",
        b"memory.replies.a/../b",
        b"\xff\xfe",
        b"memory.replies." + b"a" * 250,
    ],
)
@pytest.mark.parametrize("header", ["reply_to", "kafka_replyTopic", "REPLY_TOPIC"])
def test_any_other_topic_is_rejected(header: str, topic: bytes | None) -> None:
    with pytest.raises(Rejected) as refused:
        parse_reply_address(request_with((header, topic)), REPLIES)
    assert refused.value.code == "reply_topic_refused"


@pytest.mark.parametrize(
    ("topic", "header", "value"),
    [
        ("reply_to", "reply_partition", b""),
        ("reply_to", "reply_partition", b"-1"),
        ("reply_to", "reply_partition", b"one"),
        ("reply_to", "reply_partition", b"9" * 400),
        ("reply_to", "reply_partition", "\u0661".encode()),
        ("reply_to", "reply_partition", b"\x00\x00\x00\x01"),
        ("kafka_replyTopic", "kafka_replyPartition", b"1"),
        ("kafka_replyTopic", "kafka_replyPartition", b""),
        ("kafka_replyTopic", "kafka_replyPartition", b"\x80\x00\x00\x00"),
    ],
)
def test_invalid_partition_is_rejected_with_its_header(topic: str, header: str, value: bytes) -> None:
    sent = request_with((topic, b"memory.replies"), (header, value))
    address = parse_reply_address(sent, REPLIES)
    assert address is not None, "so that the error can be replied"
    with pytest.raises(Rejected) as refused:
        with_reply_partition(address, sent)
    assert refused.value.code == "invalid_value"
    assert refused.value.field == f"headers.{header}"


@pytest.mark.parametrize(
    ("value", "deadline"), [(b"0", 0), (b"1772357400000", 1_772_357_400_000), (b"9223372036854775807", 2**63 - 1)]
)
def test_deadline_is_in_milliseconds(value: bytes, deadline: int) -> None:
    assert deadline_ms(request_with(("deadline", value))) == deadline


def test_no_deadline_is_none() -> None:
    assert deadline_ms(request_with()) is None


@pytest.mark.parametrize("value", [None, b"", b"soon", b"-5", b"1.5", b"9" * 400, b"\xff"])
def test_invalid_deadline_is_rejected(value: bytes | None) -> None:
    with pytest.raises(Rejected) as refused:
        deadline_ms(request_with(("deadline", value)))
    assert refused.value.field == "headers.deadline"
