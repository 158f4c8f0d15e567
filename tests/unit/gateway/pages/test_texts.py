"""Texts of memories on pages: escaped, cut, with marks that are properly nested in light Markdown."""

import pytest

from gateway.pages.texts import Piece, drawn, excerpt, pieces_of, said


def test_markup_of_a_turn_is_escaped() -> None:
    assert str(said({"role": "user", "text": "<b> **<i>** `<u>`"})) == (
        "&lt;b&gt; <strong>&lt;i&gt;</strong> <code>&lt;u&gt;</code>"
    )


def test_output_of_a_tool_keeps_its_columns() -> None:
    assert said({"role": "tool", "text": "a  b\n<c>"}) == "<pre>a  b\n&lt;c&gt;</pre>"


def test_lines_of_cells_are_a_table_with_its_head() -> None:
    text = "Ports:\n| job | port |\n|---|---|\n| <a> | `1` |\nDone."
    assert str(said({"role": "user", "text": text})) == (
        'Ports:\n<div class="scroll" tabindex="0"><table><tr><th>job</th><th>port</th></tr>'
        "<tr><td>&lt;a&gt;</td><td><code>1</code></td></tr></table></div>Done."
    )


def test_a_line_between_two_tables_is_shown() -> None:
    shown = said({"role": "user", "text": "| red |\nThen:\n| blue |\n| green |"})
    assert "Then:" in shown


def test_bars_in_a_fence_stay_code() -> None:
    text = "```\n| a |\n| b |\n```\n"
    assert str(said({"role": "user", "text": text})) == "<pre><code>| a |\n| b |\n</code></pre>"


def test_a_fence_is_code() -> None:
    assert said({"role": "user", "text": "So:\n```python\nx < 1\n```\nyes"}) == (
        "So:\n<pre><code>x &lt; 1\n</code></pre>yes"
    )


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


def test_a_mark_over_markdown_is_in_each_of_its_parts() -> None:
    pieces = [Piece("so ", is_marked=True), Piece("**bl", is_marked=True), Piece("ack** `c`")]
    assert str(drawn(pieces)) == "<mark>so </mark><strong><mark>bl</mark>ack</strong> <code>c</code>"


def test_marked_words_of_a_table_and_of_a_fence_are_marked() -> None:
    pieces = [Piece("| "), Piece("cat", is_marked=True), Piece(" |\n|---|\n```\n"), Piece("<x>", is_marked=True)]
    assert str(drawn(pieces, in_link=True)) == (
        "<table><tr><th><mark>cat</mark></th></tr></table><pre><code><mark>&lt;x&gt;</mark></code></pre>"
    )


def test_titles_and_lists_lose_their_signs() -> None:
    assert str(drawn([Piece("## Flour <b>\n- rye\n  * oats\n2 * 3")])) == (
        "<strong>Flour &lt;b&gt;</strong>\n• rye\n  • oats\n2 * 3"
    )


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "[x](javascript:alert(1))", "`<img onerror=a>`", "|<a>|\n|<b>|"]
)
def test_no_tag_of_a_memory_gets_through(text: str) -> None:
    shown = str(drawn([Piece(text, is_marked=True)], mark="passage"))
    assert not set(shown.replace("><", ">\n<").split("<")) & {"script>alert(1)", "img onerror=a>", "a>", "b>"}
    assert "href" not in shown
