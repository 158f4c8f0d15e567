"""Any turn ends as a readable memory or as an error, never as a crash."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from agents.rules.memory.visibility import build_memory_view
from agents.rules.query.questions import parse_question
from agents.rules.text.tokenizer import extract_entities, fold, question_terms, tokenize
from schemas.internal.events import Remembered
from schemas.messages.records import Record
from schemas.messages.replies import SuccessReply
from schemas.state.memories import Memory
from tests.builders.turns import record, turn_fields
from tests.harnesses.worker import HERE, TOPICS, WorkerHarness
from tests.properties import SHARED_FIXTURE, scaled

REPLY = ("reply_to", b"memory.replies")


class TurnSteps(WorkerHarness):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.turns = self.turns_step()
        self.vectors = self.embed_step()

    async def process(self, received: Record) -> str:
        self.publisher.sent, self.publisher.replies = [], []
        await self.turns.settle([await (await self.turns.begin(received))])
        assert self.progress.next_offset(HERE) == received.offset + 1
        letters = self.publisher.to(TOPICS.dead_letters)
        if letters:
            [letter] = letters
            assert letter.key == received.key
            assert letter.value == received.value
            return (dict(letter.headers)["dead_letter_code"] or b"").decode()
        published = self.publisher.to(TOPICS.remembered)
        assert published
        for out in published:
            await self._assert_stored(Remembered.model_validate_json(out.value or b"").memory)
            await self.vectors.settle([await (await self.vectors.begin(record(out.value, topic=out.topic)))])
        statuses = [json.loads(each.value or b"")["status"] for each in self.publisher.to(TOPICS.embedded)]
        assert statuses == ["ready"] * len(published)
        return "ok"

    async def _assert_stored(self, published: Memory) -> None:
        """Check that table and event have the same record, which serialises to JSON."""
        assert self.memories.get(HERE, published.memory_id) == published
        assert published.memory_id in self.words.memory_columns(HERE, published.index_name).number_of
        json.loads(SuccessReply(build_memory_view(published)).encode(), parse_constant=pytest.fail)


@pytest.fixture
def steps(tmp_path: Path) -> Iterator[TurnSteps]:
    steps = TurnSteps(tmp_path)
    yield steps
    steps.words.close()


def raw(extra: str) -> bytes:
    return json.dumps(turn_fields()).encode()[:-1] + extra.encode() + b"}"


HOSTILE: dict[str, tuple[Any, str]] = {
    "nested without end": (b'{"schema":' + b"[" * 1_000_000, "too_large"),
    "an ignored field nested without end": (raw(',"x":' + "[" * 500 + "]" * 500), "invalid_json"),
    "metadata at the parser's own limit": (raw(',"metadata":{"a":' + "[" * 199 + "]" * 199 + "}"), "invalid_value"),
    "metadata at our limit": (raw(',"metadata":{"a":' + "[" * 63 + "]" * 63 + "}"), "ok"),
    "a million nulls": (raw(',"metadata":{"a":[' + "null," * 1_000_000 + "1]}"), "too_large"),
    "numbers that grow": (raw(',"metadata":{"a":[' + "1e15," * 60_000 + "1]}"), "too_large"),
    "resources that grow": (raw(',"resources":[' + '{"uri":"a","text":"b"},' * 9999 + '{"uri":"a"}]'), "too_large"),
    "a lone surrogate": (raw(',"speaker":"\\ud800"'), "invalid_json"),
    "a lone surrogate as a key": (raw(',"metadata":{"\\udfff":1}'), "invalid_json"),
    "NaN": (raw(',"metadata":{"a":NaN}'), "invalid_json"),
    "infinity by overflow": (raw(',"metadata":{"a":-1e999}'), "ok"),
    "400 digits": (raw(',"metadata":{"a":' + "9" * 400 + "}"), "ok"),
    "4000 digits": (raw(',"metadata":{"a":' + "9" * 4000 + "}"), "ok"),
    "a million digits": (raw(',"metadata":{"a":' + "9" * 1_000_000 + "}"), "invalid_json"),
    "names of JavaScript": (raw(',"metadata":{"__proto__":{"a":1},"constructor":null,"":[]}'), "ok"),
    "a field twice": (raw(',"content":"again"'), "ok"),
    "ids of 512": (turn_fields(turn_id="\U0001f600" * 512, conversation_id="c" * 512), "ok"),
    "ids of 513": (turn_fields(conversation_id="c" * 513), "too_large"),
    "control characters": (turn_fields(conversation_id="\x00\n\x1b", speaker="\x00", turn_id="\x7f'\";--"), "ok"),
    "a mark of our own": (turn_fields("\x1fviolin \x1f\x1f", speaker="\x1f"), "ok"),
    "empty strings": (turn_fields(speaker="", metadata={"": ""}), "ok"),
    "an empty conversation": (turn_fields(conversation_id=""), "invalid_value"),
    "nothing but space": (turn_fields(" \n\t\u3000"), "ok"),
    "nothing but NUL": (turn_fields("\x00"), "ok"),
    "year 1": (turn_fields(occurred_at="0001-01-01T00:00:00Z"), "ok"),
    "year 9999": (turn_fields(occurred_at="9999-12-31T23:59:59.999999Z"), "ok"),
    "before year 1": (turn_fields(occurred_at="0001-01-01T00:00:00+23:59"), "invalid_value"),
    "after year 9999": (turn_fields(occurred_at="9999-12-31T23:59:59-23:59"), "invalid_value"),
    "the longest content": (turn_fields("\U0001f600" * 32768), "ok"),
    "a ligature that is a sentence": (turn_fields("\ufdfa" * 32768), "ok"),
    "a long caption": (turn_fields(resources=[{"uri": "u" * 2048, "text": "x" * 32768}]), "ok"),
    "a mode of a megabyte": (turn_fields(mode="m" * 1_000_000), "unknown_mode"),
    "a scope field of a megabyte": (turn_fields(scope={"user_id": "u1", "x" * 1_000_000: 1}), "unknown_scope_field"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_it_ends_as_a_memory_or_as_an_error(steps: TurnSteps, name: str) -> None:
    value, outcome = HOSTILE[name]
    assert await steps.process(record(value, headers=(REPLY,))) == outcome
    [reply] = steps.publisher.replies
    published = json.loads(reply.value or b"")
    assert published["status"] == ("ok" if outcome == "ok" else "error")
    assert len(reply.value or b"") < 3000


@pytest.mark.parametrize("timestamp_ms", [-1, 0, 10**18, -(10**18), 2**63 - 1, -(2**63)])
async def test_any_timestamp_of_a_record_is_a_time(steps: TurnSteps, timestamp_ms: int) -> None:
    assert await steps.process(record(turn_fields(), timestamp_ms=timestamp_ms)) == "ok"


@pytest.mark.parametrize(
    "headers",
    [
        (("reply_to", b""), ("correlation_id", b"")),
        (("reply_to", None), ("correlation_id", None)),
        (("deadline", b""),),
        (("deadline", None),),
        (("modestream_moved_from", b"1:1:A"), REPLY),
        (("modestream_moved_from", b"1:1:A"), ("reply_to", b"nowhere")),
        (("", b""), ("\x00", b"\xff" * 10_000)),
    ],
)
async def test_any_header_ends_as_a_memory_or_as_an_error(steps: TurnSteps, headers: Any) -> None:
    assert await steps.process(record(turn_fields(), headers=headers)) in ("ok", "reply_topic_refused", "invalid_value")


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(), inner, max_size=4),
    max_leaves=12,
)
FIELDS = some.dictionaries(
    some.sampled_from(
        [*turn_fields(), "turn_id", "speaker", "occurred_at", "mode", "importance", "metadata", "resources"]
    ),
    JSON,
    max_size=3,
)


@settings(max_examples=scaled(150), suppress_health_check=SHARED_FIXTURE)
@given(fields=FIELDS, content=some.text(min_size=1, max_size=200), metadata=some.dictionaries(some.text(), JSON))
async def test_any_json_ends_as_a_memory_or_as_an_error(
    steps: TurnSteps, fields: dict[str, Any], content: str, metadata: dict[str, Any]
) -> None:
    await anything(steps, json.dumps(turn_fields(content, metadata=metadata) | fields).encode("utf-8", "surrogatepass"))


@settings(suppress_health_check=SHARED_FIXTURE)
@given(
    some.binary(max_size=60)
    | some.text(max_size=60).map(lambda text: b'{"schema":"turn.v1",' + text.encode("utf-8", "replace"))
)
async def test_any_bytes_end_as_an_error(steps: TurnSteps, value: bytes) -> None:
    assert await anything(steps, value) in ("invalid_json", "unknown_schema", "invalid_value")


async def anything(steps: TurnSteps, value: bytes) -> str:
    """Process a generated value, for any user."""
    steps.publisher.sent = []
    await (await steps.turns.begin(record(value, offset=0)))
    codes = [(dict(out.headers)["dead_letter_code"] or b"").decode() for out in steps.publisher.to(TOPICS.dead_letters)]
    assert "internal" not in codes
    return codes[0] if codes else "ok"


LONG = 32_768
PATTERNS = [
    "a-",
    "A ",
    "_",
    "中",
    "가",
    "a_",
    "A-",
    "1-",
    "-1",
    "a.",
    "a.b",
    "www.",
    "http://",
    "@a.",
    "A'",
    "(A",
    "A\u0301 ",
]
PATTERNS += ["\ufdfa", "😀", "_-", "aA", "\u0300", "A of ", "1a", "a", "a:b@"]


def test_text_grows_by_a_few_times_at_most_when_it_is_folded() -> None:
    assert len(fold("\ufdfa" * LONG)) < 5 * LONG
    assert fold("\ufdfa") == fold(
        "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064a\u0647 \u0648\u0633\u0644\u0645"
    )


@pytest.mark.timeout(10)  # a pattern with quadratic backtracking takes half a minute
@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_text_of_any_length_blocks_the_step(pattern: str) -> None:
    text = (pattern * LONG)[:LONG]
    for read in (
        extract_entities,
        tokenize,
        question_terms,
        lambda question: parse_question(question, ["A", "Ana", ""]),
    ):
        assert read(text) is not None
