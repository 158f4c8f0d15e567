"""Long texts are cut into passages: at paragraphs and items, completely, and the same way each time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.rules.text.passages import (
    MAX_CAPTION_CHARS,
    MAX_CONTENT_CHARS,
    MAX_PASSAGES,
    MAX_UNCUT_CHARS,
    cut_passages,
    embedded_passages,
    embedding_text,
    lexical_text,
)
from schemas.state.memories import Resource
from tests.builders.memories import made

PLAN = """Here is the plan for the three days, with times that leave room for the children.

## Friday

- **Morning**: arrive at the station, leave the bags in the lockers on the north side, and walk to the market hall for \
a late breakfast. The queue at the bakery moves quickly.
- **Afternoon**: the museum of trains. Tickets for a family are 34 euros, and the last entry is at four.

## Saturday

1. Take the 9:12 bus to the lake, and sit on the left for the view.
2. Hire a boat for two hours; the deposit of 50 euros is in cash.

```python
def cost(adults, children):
    return 17 * adults + 8 * children
```

Tell me if the lake is too far, and I'll replace it by the botanical garden."""


def texts(text: str) -> list[str]:
    return [text[start:end] for start, end in cut_passages(text)]


def test_a_short_text_has_no_passages() -> None:
    assert cut_passages("The deploy target is fly.io now.") == []


def test_a_text_up_to_the_limit_has_no_passages() -> None:
    assert cut_passages("a" * MAX_UNCUT_CHARS) == []


def test_a_heading_stays_with_what_follows_it() -> None:
    assert not any(passage.endswith(("Friday", "Saturday")) for passage in texts(PLAN))


def test_a_list_is_cut_before_an_item() -> None:
    assert all(passage.startswith(("Here", "##", "-", "1.", "2.", "```", "Tell")) for passage in texts(PLAN))


def test_a_text_without_paragraphs_is_cut_at_sentence_ends() -> None:
    text = " ".join(f"This is sentence number {number} of a long message." for number in range(40))
    assert all(passage.endswith(".") for passage in texts(text))


def test_a_text_without_spaces_is_cut_all_the_same() -> None:
    assert "".join(texts("x" * 5000)) == "x" * 5000


@pytest.mark.parametrize("text", ["a few words. " * 2520, "x" * 32_768, "ab\n\n" * 8192])
def test_the_longest_turn_has_a_bounded_number_of_passages(text: str) -> None:
    assert 30 <= len(cut_passages(text)) <= MAX_PASSAGES


@pytest.mark.parametrize("size", [481, 2000, 32_768])
def test_a_passage_is_not_empty(size: int) -> None:
    assert all(texts(("word\n\n" * size)[:size]))


@given(st.text(alphabet="ab.! \n#-`1", min_size=MAX_UNCUT_CHARS + 1, max_size=2500))
def test_passages_hold_all_of_a_text_but_white_space(text: str) -> None:
    assert "".join("".join(texts(text)).split()) == "".join(text.split())


@given(st.text(alphabet="ab.! \n#-`1", min_size=MAX_UNCUT_CHARS + 1, max_size=2500))
def test_passages_lie_in_order_without_overlap(text: str) -> None:
    edges = [edge for span in cut_passages(text) for edge in span]
    assert edges == sorted(edges)


PHOTO = Resource(uri="s3://bucket/a.png", media_type="image/png", text="a red kite")


def test_captions_follow_the_content() -> None:
    nameless = Resource(uri="file:b", text="a report")
    memory = made("Look at this!", resources=(PHOTO, Resource(uri="file:silent"), nameless))
    assert embedding_text(memory) == "Look at this! [image: a red kite] [file: a report]"
    assert lexical_text(memory) == embedding_text(memory)


def test_speaker_is_not_embedded() -> None:
    assert embedding_text(made("Hello", speaker="Ana")) == "Hello"


def test_embedded_text_is_bounded_and_indexed_text_is_not() -> None:
    long = Resource(uri="file:c", media_type="video/mp4", text="z" * 9000)
    memory = made("a" * 9000, resources=(long,), origin="distilled")
    assert embedding_text(memory) == f"{'a' * MAX_CONTENT_CHARS} [video: {'z' * MAX_CAPTION_CHARS}]"
    assert lexical_text(memory) == f"{'a' * 9000} [video: {'z' * 9000}]"


def test_all_of_a_long_turn_is_embedded() -> None:
    text = "A sentence of a long reply. " * 400
    assert embedding_text(made(text)).split() == text.split()


def test_texts_that_are_cut_at_other_places_have_other_embedded_texts() -> None:
    """Else a blank line that moves would leave the vectors of the former passages."""
    line = ("words of a line " * 12).strip()
    former, latter = made(f"{line}\n{line}\n\n{line}"), made(f"{line}\n\n{line}\n{line}")
    assert embedded_passages(former) != embedded_passages(latter)
    assert embedding_text(former) != embedding_text(latter)


def test_a_text_that_is_cut_since_an_edit_has_another_embedded_text() -> None:
    line = "w" * 239
    assert embedding_text(made(f"{line}\n{line}w")) != embedding_text(made(f"{line}\n\n{line}w"))
