"""Answers that are read while they pass: the text of a whole first choice, and of nothing else."""

import json
from typing import Any

import pytest

from gateway.openai.chat import MAX_READ_BYTES, StreamedAnswer, WholeAnswer
from tests.fakes.provider import DONE, LAST, completion, event


def whole(body: bytes) -> str | None:
    reader = WholeAnswer()
    for start in range(0, len(body), 7):
        reader.feed(body[start : start + 7])
    return reader.text()


def streamed(body: bytes, size: int = 7) -> str | None:
    reader = StreamedAnswer()
    for start in range(0, len(body), size):
        reader.feed(body[start : start + size])
    return reader.text()


def choices(*texts: Any) -> bytes:
    listed = [{"index": at, "message": {"content": text}, "finish_reason": "stop"} for at, text in enumerate(texts)]
    return json.dumps({"choices": listed[::-1]}).encode()


def test_a_whole_answer_has_its_text() -> None:
    assert whole(completion("Tea ☕")) == "Tea ☕"


def test_the_first_choice_is_the_one_of_index_0() -> None:
    assert whole(choices("Tea.", "Coffee.")) == "Tea."


def test_parts_of_a_text_are_a_text() -> None:
    assert whole(choices([{"type": "text", "text": "Tea."}])) == "Tea."


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b'{"choices":7}', b'{"choices":[7]}', b'{"choices":[{"message":7}]}', completion(None),
     completion("Tea.", error={"message": "x"}), b'{"choices":[{"message":{"content":"Tea."}}]}', b"[" * 100_000],
)  # fmt: skip
def test_what_is_no_answer_has_no_text(body: bytes) -> None:
    assert whole(body) is None


def test_an_answer_beyond_the_limit_is_not_read() -> None:
    reader = WholeAnswer()
    reader.feed(completion("x" * MAX_READ_BYTES))
    assert reader.text() is None


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_streamed_answer_has_its_text_however_it_is_cut(size: int) -> None:
    other = event("Coffee.").replace(b'"index": 0', b'"index": 1')
    assert streamed(b": comment\n\n" + event("Tea") + other + event(" ☕") + LAST, size) == "Tea ☕"


def test_lines_may_end_as_on_other_systems() -> None:
    assert streamed((event("Tea.") + LAST).replace(b"\n", b"\r\n")) == "Tea."


def test_a_usage_without_choices_changes_nothing() -> None:
    assert (
        streamed(event("Tea.") + event(finish_reason="stop") + b'data: {"choices":[],"usage":{}}\n\n' + DONE) == "Tea."
    )


@pytest.mark.parametrize(
    "body",
    [event("Tea."), event("Tea.") + DONE, event("Tea.") + b"data: [[[\n\n" + LAST, LAST,
     event("Tea.") + b'data: {"error":{"message":"x"}}\n\n' + LAST, event("Tea.") + b"data: " + b"[" * 100_000 + b"\n"],
)  # fmt: skip
def test_a_stream_that_fails_or_breaks_off_has_no_text(body: bytes) -> None:
    assert streamed(body, 100_000) is None


def test_a_line_without_end_is_not_kept() -> None:
    reader = StreamedAnswer()
    for _ in range(MAX_READ_BYTES // 65_536 + 2):
        reader.feed(b"x" * 65_536)
    reader.feed(b"\n" + event("Tea.") + LAST)
    assert reader.text() is None


def test_an_answer_of_known_length_is_whole_at_its_last_byte() -> None:
    body = completion("Tea.")
    reader = WholeAnswer(str(len(body)))
    reader.feed(body[:-1])
    assert not reader.is_whole
    reader.feed(body[-1:])
    assert reader.is_whole


def test_a_stream_is_whole_at_its_last_event() -> None:
    reader = StreamedAnswer()
    reader.feed(event("Tea."))
    assert not reader.is_whole
    reader.feed(LAST)
    assert reader.is_whole
