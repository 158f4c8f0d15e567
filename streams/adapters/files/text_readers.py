"""Readers of texts: plain, Markdown, HTML, tables, JSON."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, BinaryIO

from selectolax.lexbor import LexborHTMLParser, LexborNode

from schemas.state.files import ReadFailed
from streams.adapters.files.reading import HEAD_BYTES, encoding_of
from streams.adapters.files.text_builder import TextBuilder, too_long

MAX_BYTES_PER_CHAR = 4
MARKUP_PER_CHAR = 30
"""Bytes of markup for each character of text, at most: pages with less text are none."""

_DECLARED = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)
_UNSEEN = "script, style, noscript, template, iframe, object, svg, math, head, nav, footer, aside, form, button, select"
_MAIN = "main, article, [role=main]"
MAIN_SHARE = 0.25
"""Minimum share of a page's text in its main element; with less, the element is not the page's subject."""

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_UNENDED = frozenset((
    "area", "base", "body", "br", "col", "dd", "dt", "embed", "head", "hr", "html", "img", "input", "li", "link",
    "meta", "option", "p", "source", "tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr",
))  # fmt: skip
"""Elements that need no end."""

MAX_DEPTH = 5000

_BLOCKS = "p, div, section, article, main, header, li, tr, table, pre, blockquote, dt, dd, figure, figcaption, br, hr"
_HEADINGS = "h1, h2, h3, h4, h5, h6"
_BREAK, _SECTION, _CELL = "\ue0f0", "\ue0f1", "\ue0f2"
"""Stand in a page's text where a block, a heading and a cell end or begin; of private use, so no page has them."""


def read_text(file: BinaryIO, text: TextBuilder, *, markdown: bool = False) -> None:
    text.add_paragraphs(decode(file, text.max_chars * MAX_BYTES_PER_CHAR, text.max_chars), headings=markdown)


def decode(file: BinaryIO, max_bytes: int, max_chars: int) -> str:
    """Return a whole text. Raises `ReadFailed` if it is not text, or too long."""
    content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise too_long(max_chars)
    encoding = encoding_of(content[:HEAD_BYTES])
    if encoding == "utf-8":
        try:
            return content.decode()
        except UnicodeDecodeError:
            # Only its beginning was plain ASCII.
            encoding = encoding_of(content[-HEAD_BYTES:]) or "cp1252"
            encoding = "cp1252" if encoding == "utf-8" else encoding
    if encoding is None:
        raise ReadFailed("unreadable", "The file is no text.")
    return content.decode(encoding, "replace")


def read_html(file: BinaryIO, text: TextBuilder) -> None:
    """Read what a page shows of its subject: no scripts, menus or footers, and nothing that it refers to."""
    max_bytes = text.max_chars * MARKUP_PER_CHAR
    head = file.read(HEAD_BYTES)
    file.seek(0)
    declared = _DECLARED.search(head)
    if declared and encoding_of(head) not in {"utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be"}:
        try:
            page = file.read(max_bytes).decode(declared[1].decode("ascii"), "replace")
        except LookupError:
            file.seek(0)
            page = decode(file, max_bytes, text.max_chars)
    else:
        page = decode(file, max_bytes, text.max_chars)
    add_html(page, text)


def add_html(page: str, text: TextBuilder) -> None:
    # How deep a page is nested, by its tags: the parser's time grows with the square of it.
    depth = deepest = 0
    begun: Counter[str] = Counter()
    for tag in _TAG.finditer(page):
        # An end of what was not begun ends nothing.
        if (name := tag[2].lower()) not in _UNENDED and (not tag[1] or begun[name]):
            step = -1 if tag[1] else 1
            begun[name] += step
            depth += step
            deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise ReadFailed("unreadable", "The page is nested too deeply.")
    tree = LexborHTMLParser(page.translate(dict.fromkeys(map(ord, (_BREAK, _SECTION, _CELL)))))
    title = tree.css_first("title")
    text.add(" ".join(title.text().split()) if title else "", begins_section=True)
    for node in reversed(tree.css(_UNSEEN)):  # what is inside of others first: they take it along
        node.decompose()
    body = tree.body
    if body is None:
        return
    for node in tree.css(_BLOCKS):
        node.insert_before(_BREAK)
        node.insert_after(_BREAK)
    for node in tree.css(_HEADINGS):
        node.insert_before(_SECTION)
        node.insert_after(_BREAK)
    for node in tree.css("td, th"):
        node.insert_after(_CELL)
    for block in re.split(f"(?={_SECTION})|{_BREAK}", _main_of(tree, body).text()):
        shown = " ".join(block.split()).replace(_CELL, " | ").strip(" |")
        text.add(shown.removeprefix(_SECTION), begins_section=_SECTION in block)


def _main_of(tree: LexborHTMLParser, body: LexborNode) -> LexborNode:
    mains = tree.css(_MAIN)
    main = max(mains, key=lambda node: len(node.text()), default=body) if len(mains) <= 50 else body
    return main if len(main.text()) >= MAIN_SHARE * len(body.text()) else body


def read_csv(file: BinaryIO, text: TextBuilder) -> None:
    """Read a table, each row with its header."""
    csv.field_size_limit(text.max_chars)
    content = decode(file, text.max_chars * MAX_BYTES_PER_CHAR, text.max_chars)
    try:
        dialect: Any = csv.Sniffer().sniff(content[:HEAD_BYTES].rpartition("\n")[0] or content[:HEAD_BYTES], ",;\t|")
    except csv.Error:
        dialect = csv.excel
    try:
        add_rows(
            ([cell.strip() for cell in row] for row in csv.reader(io.StringIO(content, newline=""), dialect)), text
        )
    except csv.Error as problem:
        raise ReadFailed("unreadable", "The table is broken.") from problem


def add_rows(rows: Iterable[Sequence[str]], text: TextBuilder) -> None:
    """Add the rows of a table; the first one is the header if it looks like one."""
    filled = (row for row in rows if any(row))
    first, second = next(filled, None), next(filled, None)
    if first is None:
        return
    header = first if second is not None and _is_header(first) else None
    if header is None:
        text.add_row(first, None)
    if second is not None:
        for row in chain((second,), filled):
            text.add_row(row, header)


def _is_header(row: Sequence[str]) -> bool:
    """True if the cells are different words."""
    cells = [cell for cell in row if cell]
    are_words = all(any(map(str.isalpha, cell)) for cell in cells)
    return len(set(cells)) == len(cells) and len(cells) > len(row) // 2 and are_words


def read_json(file: BinaryIO, text: TextBuilder) -> None:
    """Read a document, or one in each line: a line for each object, with the names of its fields."""
    content = decode(file, text.max_chars * MARKUP_PER_CHAR, text.max_chars)
    try:
        try:
            documents: Iterable[Any] = [json.loads(content)]
        except ValueError:
            documents = [json.loads(line) for line in content.splitlines() if line.strip()]
        for document in documents:
            _add_json(document, "", text)
    except (ValueError, RecursionError) as problem:
        raise ReadFailed("unreadable", "The JSON document is broken, or nested too deeply.") from problem


def _add_json(value: Any, path: str, text: TextBuilder) -> None:
    if not isinstance(value, dict | list):
        text.add(f"{path}: {_shown(value)}" if path else _shown(value), gap="\n")
        return
    items = value.items() if isinstance(value, dict) else enumerate(value, 1)
    scalars = {name: each for name, each in items if not isinstance(each, dict | list) and each not in (None, "")}
    if isinstance(value, dict):
        line = "; ".join(f"{name}: {_shown(each)}" for name, each in scalars.items())
    else:
        line = ", ".join(map(_shown, scalars.values()))
    if line:
        text.add(f"{path}: {line}" if path else line, gap="\n")
    nested = value.items() if isinstance(value, dict) else ((None, each) for each in value)
    for name, each in nested:
        if isinstance(each, dict | list):
            _add_json(each, " / ".join(filter(None, (path, name))), text)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
