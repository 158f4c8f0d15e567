"""Texts of memories as they are shown: cut, words and spans marked, light Markdown drawn.

Pure. Guaranteed: what a memory says is escaped; only tags of this module are around it, properly nested. Offsets are
Unicode code points.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

AROUND_CHARS = 280
"""Characters shown before and after a marked piece: about two sentences."""


class Piece(NamedTuple):
    """A part of a text. `is_marked`: it lies in a span."""

    text: str
    is_marked: bool = False


def pieces_of(text: str, spans: Iterable[tuple[int, int]]) -> list[Piece]:
    """Cut a text at its spans, which may overlap, and may lie outside where the text has changed since.

    >>> pieces_of("we moved to Kent", [(9, 16)])
    [Piece(text='we moved ', is_marked=False), Piece(text='to Kent', is_marked=True)]
    """
    pieces, position = [], 0
    for start, end in _merged(spans, len(text)):
        pieces += [Piece(text[position:start]), Piece(text[start:end], is_marked=True)]
        position = end
    pieces.append(Piece(text[position:]))
    return [piece for piece in pieces if piece.text]


def marked_text(text: str, contained: str | None, chars: int) -> Markup:
    """Return the beginning of a text, from shortly before what it must contain, which is marked.

    >>> str(marked_text("we moved <here>", "MOVED", 80))
    'we <mark>moved</mark> &lt;here&gt;'
    """
    found = re.search(re.escape(contained), text, re.IGNORECASE) if contained else None
    begin = max(0, found.start() - chars // 3) if found and found.end() > chars else 0
    pieces = pieces_of(text[begin : begin + chars], [(found.start() - begin, found.end() - begin)] if found else [])
    shown = Markup("").join(
        Markup("<mark>{}</mark>").format(piece.text) if piece.is_marked else piece.text for piece in pieces
    )
    return Markup("… ") * (begin > 0) + shown + Markup(" …") * (begin + chars < len(text))


BLOCK = re.compile(
    r"^```[^\n`]*\n(?P<code>.*?)(?:^```[ ]*$\n?|\Z)|(?P<table>(?:^[ ]*\|[^\n]*\|[ ]*$\n?){2,})",
    re.MULTILINE | re.DOTALL,
)
"""A fence, which the end of a cut text closes too; lines of cells between bars."""

INLINE = re.compile(
    r"`(?P<code>[^`\n]+)`|\*\*(?P<strong>[^*\n]+)\*\*"
    r"|^[ ]{0,3}#{1,6}[ ]+(?P<title>[^\n]+)|^(?P<indent>[ ]*)[*-][ ]+(?=\S)",
    re.MULTILINE,
)
"""Marks within a line that are shown: code, strong words, a title, an entry of a list."""

LINE = re.compile(r"[^\n]+")

CELL = re.compile(r"\|([^|\n]*)(?=\|)")

RULE = re.compile(r"[\s|:-]+")
"""The line below a table's head."""


def said(turn: Mapping[str, Any], chars: int = 4_000) -> Markup:
    """Return the beginning of a turn's text as `drawn` does.

    >>> str(said({"role": "user", "text": "Set `TTL`"}))
    'Set <code>TTL</code>'
    """
    text = str(turn["text"])
    return drawn([Piece(text if len(text) <= chars else f"{text[:chars]} …")], turn.get("role"))


def drawn(pieces: Iterable[Piece], role: str | None = None, mark: str = "", *, in_link: bool = False) -> Markup:
    """Return a text with its marked pieces, code in a code face, and light Markdown; a tool's output as it is.

    `mark` is the class of marks. `in_link`: tables have no box to scroll them, which would be a control in a link.

    >>> str(drawn([Piece("the "), Piece("cat", True), Piece(" is **black**")]))
    'the <mark>cat</mark> is <strong>black</strong>'
    """
    text, spans = "", []
    for piece in pieces:
        if piece.is_marked:
            spans.append((len(text), len(text) + len(piece.text)))
        text += piece.text
    tag = Markup('<mark class="{}">').format(mark) if mark else Markup("<mark>")

    def leaf(start: int, end: int) -> Markup:
        cut = pieces_of(text[start:end], [(first - start, last - start) for first, last in spans])
        return Markup("").join(tag + piece.text + Markup("</mark>") if piece.is_marked else piece.text for piece in cut)

    if role == "tool":
        return Markup("<pre>{}</pre>").format(leaf(0, len(text)))
    shown, position = Markup(""), 0
    for block in BLOCK.finditer(text):
        shown += _inline(text, position, block.start(), leaf)
        if block["table"] is None:
            shown += Markup("<pre><code>{}</code></pre>").format(leaf(*block.span("code")))
        else:
            table = _table(text, *block.span("table"), leaf)
            shown += table if in_link else Markup('<div class="scroll" tabindex="0">{}</div>').format(table)
        position = block.end()
    return shown + _inline(text, position, len(text), leaf)


Leaf = Callable[[int, int], Markup]
"""Returns a part of a text, by its offsets, escaped and marked."""


def _table(text: str, start: int, end: int, leaf: Leaf) -> Markup:
    """Return lines of cells between bars as a table; its head is above the rule, if there is one."""
    lines = list(LINE.finditer(text, start, end))
    has_head = RULE.fullmatch(lines[1][0]) is not None
    shown = Markup("")
    for number, line in enumerate(lines):
        if has_head and number == 1:
            continue
        cell = Markup("<th>{}</th>") if has_head and number == 0 else Markup("<td>{}</td>")
        cells = (found.span(1) for found in CELL.finditer(text, *line.span()))
        shown += Markup("<tr>{}</tr>").format(
            Markup("").join(cell.format(_inline(text, first, last, leaf).strip()) for first, last in cells)
        )
    return Markup("<table>{}</table>").format(shown)


def _inline(text: str, start: int, end: int, leaf: Leaf) -> Markup:
    shown, position = Markup(""), start
    for found in INLINE.finditer(text, start, end):
        shown += leaf(position, found.start())
        if found["code"] is not None:
            shown += Markup("<code>{}</code>").format(leaf(*found.span("code")))
        elif found["indent"] is not None:
            shown += found["indent"] + "• "
        else:
            shown += Markup("<strong>{}</strong>").format(leaf(*found.span("title" if found["title"] else "strong")))
        position = found.end()
    return shown + leaf(position, end)


def excerpt(pieces: Sequence[Piece], around: int = AROUND_CHARS) -> list[Piece]:
    """Cut unmarked pieces to the characters next to marked ones; cut a text without marks at its end."""
    last = len(pieces) - 1
    return [
        piece if piece.is_marked else Piece(_cut(piece.text, around, at_start=number > 0, at_end=number < last))
        for number, piece in enumerate(pieces)
    ]


def _cut(text: str, around: int, *, at_start: bool, at_end: bool) -> str:
    """Keep the characters next to marked pieces."""
    if len(text) <= around * (2 if at_start and at_end else 1):
        return text
    if at_start and at_end:
        return f"{text[:around]} … {text[-around:]}"
    return f"… {text[-around:]}" if at_end else f"{text[:around]} …"


def _merged(spans: Iterable[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted((max(0, start), min(end, length)) for start, end in spans):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
