from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from modestream_client.hits import Hit, Passage

from agents.rules.answer.hits import hit_of
from agents.rules.context.excerpts import (
    MAX_EXCERPT_CHARS,
    MAX_EXCERPTED_CHARS,
    excerpt_about,
    excerpt_of_reply,
    join_spans,
    passages_to_show,
    short_passages,
)
from agents.rules.text.passages import MAX_UNCUT_CHARS, Span, cut_passages
from schemas.state.memories import Resource
from tests.builders.memories import made

PARAGRAPHS = [f"Paragraph {number} is about tulips and their bulbs. " * 7 for number in range(8)]
REPLY = "\n\n".join(PARAGRAPHS)
SPANS = cut_passages(REPLY)


def hit(number: int, *scores: float, role: str = "assistant") -> Hit:
    passages = tuple(
        Passage(start=span.start, end=span.end, score=score) for span, score in zip(SPANS, scores, strict=False)
    )
    return hit_of(made(REPLY, number, role=role), 0.5).model_copy(update={"passages": passages})


def shown(hits: Sequence[Hit]) -> list[int]:
    return [len(passages) for passages in passages_to_show(hits).values()]


def test_the_first_hits_show_more_passages() -> None:
    assert shown([hit(number, 0.5, 0.5, 0.5) for number in range(5)]) == [3, 2, 2, 1, 1]


def test_turns_of_the_user_show_as_many_at_every_place() -> None:
    assert shown([hit(number, 0.5, 0.5, 0.5, role="user") for number in range(4)]) == [3, 3, 3, 3]


def test_passages_far_below_the_best_are_not_shown() -> None:
    assert shown([hit(0, 0.5, 0.41, 0.39)]) == [2]


def test_hits_without_passages_have_none_to_show() -> None:
    assert passages_to_show([hit_of(made("short", 0), 0.5)]) == {}


def test_long_reply_is_cut_to_its_passages_in_the_order_of_the_text() -> None:
    reply = made(REPLY, 0, role="assistant")
    parts = [REPLY[SPANS[place].start : SPANS[place].end] for place in (2, 5)]
    assert excerpt_of_reply(reply, [SPANS[5], SPANS[2]]) == f"\u2026 {parts[0]} \u2026 {parts[1]} \u2026"


def test_adjacent_passages_are_joined_as_they_were_written() -> None:
    assert join_spans(REPLY, [SPANS[1], SPANS[0]]) == REPLY[: SPANS[1].end] + " \u2026"


def test_a_turn_of_the_user_is_no_reply() -> None:
    assert excerpt_of_reply(made(REPLY, 0, role="user"), SPANS[:1]) is None


def test_a_short_reply_is_whole() -> None:
    text = REPLY[:700]
    assert excerpt_of_reply(made(text, 0, role="assistant"), cut_passages(text)[:1]) is None


def test_a_reply_with_the_text_of_a_file_is_no_mere_reply() -> None:
    page = Resource(uri="file:a", media_type="text/plain", text="The code is Alabaster.")
    assert excerpt_of_reply(made(REPLY, 0, role="assistant", resources=(page,)), SPANS[:1]) is None


def test_passages_about_a_query_are_those_that_cover_most_of_it() -> None:
    text = REPLY + "\n\nThe vault opens with the code Alabaster.\n\n" + REPLY
    excerpt = excerpt_about(text, lambda passage: float("Alabaster" in passage))
    assert excerpt is not None
    assert "Alabaster" in excerpt


def test_a_text_as_short_as_an_excerpt_is_whole() -> None:
    assert excerpt_about("x " * (MAX_EXCERPT_CHARS // 2), lambda _: 0.0) is None


def test_passages_of_a_very_long_text_are_short() -> None:
    text = "The tulips are in bloom again. " * 3000
    assert max(span.end - span.start for span in short_passages(text)) <= MAX_UNCUT_CHARS


def test_passages_are_of_the_first_characters() -> None:
    rated: list[str] = []

    def rating(passage: str) -> float:
        rated.append(passage)
        return 0.0

    excerpt_about("word " * MAX_EXCERPTED_CHARS, rating)
    assert sum(map(len, rated)) <= MAX_EXCERPTED_CHARS


@given(st.sets(st.sampled_from(SPANS), min_size=1))
def test_an_excerpt_has_every_passage_and_no_more_than_the_text(spans: set[Span]) -> None:
    excerpt = join_spans(REPLY, spans)
    assert all(REPLY[span.start : span.end] in excerpt for span in spans)
    assert len(excerpt) <= len(REPLY)
