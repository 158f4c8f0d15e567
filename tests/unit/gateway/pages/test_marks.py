"""Evidence in a text: offsets are code points, spans may overlap or be outdated."""

from gateway.pages.formats import Piece, excerpt, pieces_of


def test_offsets_count_code_points() -> None:
    text = "👍🏽 naïve: Kent"
    start = text.index("Kent")
    assert pieces_of(text, [(start, start + 4)]) == [Piece(text[:start]), Piece("Kent", is_marked=True)]


def test_overlapping_spans_are_one_mark_and_what_is_outside_is_cut() -> None:
    assert pieces_of("abcdef", [(3, 99), (-2, 1), (2, 4), (5, 5)]) == [
        Piece("a", is_marked=True),
        Piece("b"),
        Piece("cdef", is_marked=True),
    ]


def test_nothing_of_a_text_is_lost() -> None:
    text = "one two three four"
    assert "".join(piece.text for piece in pieces_of(text, [(4, 7), (8, 13)])) == text


def test_an_excerpt_keeps_marks_and_what_is_beside_them() -> None:
    pieces = [
        Piece("a" * 50),
        Piece("mark", is_marked=True),
        Piece("b" * 50),
        Piece("x", is_marked=True),
        Piece("c" * 50),
    ]
    assert [piece.text for piece in excerpt(pieces, around=5)] == ["… aaaaa", "mark", "bbbbb … bbbbb", "x", "ccccc …"]
