"""Segments of a text: at its natural places, short, and nothing left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.adapters.files.text_builder import MAX_SEGMENT_CHARS, Block, cut_segments, paragraphs

LONG = "The train left at noon, and nobody was late. " * 60


def segments(text: str, *, headings: bool = False) -> list[str]:
    return [text[piece.start : piece.end] for piece in cut_segments(text, paragraphs(text, headings=headings))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\n ", []),
        ("One.\n\nTwo.", ["One.\n\nTwo."]),
        (f"{'a' * 500}\n\n{'b' * 500}", ["a" * 500, "b" * 500]),
        (f"{'a' * 500}\r\n\r\n{'b' * 500}", ["a" * 500, "b" * 500]),
        ("a" * 1000, ["a" * 1000]),
    ],
)
def test_short_paragraphs_are_joined(text: str, expected: list[str]) -> None:
    assert segments(text) == expected


def test_headings_begin_segments() -> None:
    first, second = f"# One\n{'text ' * 20}".strip(), "## Two\ntext"
    assert segments(f"{first}\n{second}", headings=True) == [first, second]


def test_headings_of_short_sections_begin_none() -> None:
    cut = segments("# One\ntext\n" * 10_000, headings=True)
    assert len(cut) < 1_200


def test_long_paragraphs_are_cut_between_sentences() -> None:
    cut = segments(LONG)
    assert len(cut) > 1
    assert all(piece.startswith("The train") and piece.endswith("late.") for piece in cut)


def test_pages_are_not_joined() -> None:
    assert len(cut_segments("One\n\nTwo", [Block(0, 3, 1), Block(5, 8, 2)])) == 2


@given(st.text(st.sampled_from("a .\n#é📎"), max_size=5000))
def test_segments_are_the_text_without_white_space_between(text: str) -> None:
    cut = cut_segments(text, paragraphs(text, headings=True))
    ends = [0, *(piece.end for piece in cut)]
    starts = [*(piece.start for piece in cut), len(text)]
    assert not "".join(text[end:start] for end, start in zip(ends, starts, strict=True)).strip()
    assert all(piece.end - piece.start <= MAX_SEGMENT_CHARS for piece in cut)
