"""Formats of pages and what they escape: texts with marks, charts, addresses of files."""

import doctest
import gzip
import hashlib
import json
import re

import pytest

from gateway.pages import charts, formats, refill
from gateway.pages.charts import HEIGHT, MAX_PERIODS, WIDTH, chart_of
from gateway.pages.formats import Piece, excerpt, pieces_of
from gateway.pages.pages import STATIC, asset
from gateway.pages.routes import ask, pipelines
from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over


def test_examples_hold() -> None:
    for module in (charts, formats, refill, ask, pipelines):
        assert doctest.testmod(module).failed == 0


def test_a_time_is_escaped() -> None:
    assert "<b>" not in formats.moment("<b>2026")


def test_markup_of_a_turn_is_escaped() -> None:
    assert str(formats.said({"role": "user", "text": "<b> **<i>** `<u>`"})) == (
        "&lt;b&gt; <strong>&lt;i&gt;</strong> <code>&lt;u&gt;</code>"
    )


def test_output_of_a_tool_keeps_its_columns() -> None:
    assert formats.said({"role": "tool", "text": "a  b\n<c>"}) == "<pre>a  b\n&lt;c&gt;</pre>"


def test_lines_of_cells_are_a_table_with_its_head() -> None:
    text = "Ports:\n| job | port |\n|---|---|\n| <a> | `1` |\nDone."
    assert str(formats.said({"role": "user", "text": text})) == (
        'Ports:\n<div class="scroll" tabindex="0"><table><tr><th>job</th><th>port</th></tr>'
        "<tr><td>&lt;a&gt;</td><td><code>1</code></td></tr></table></div>Done."
    )


def test_bars_in_a_fence_stay_code() -> None:
    text = "```\n| a |\n| b |\n```\n"
    assert str(formats.said({"role": "user", "text": text})) == "<pre><code>| a |\n| b |\n</code></pre>"


def test_a_fence_is_code() -> None:
    assert formats.said({"role": "user", "text": "So:\n```python\nx < 1\n```\nyes"}) == (
        "So:\n<pre><code>x &lt; 1\n</code></pre>yes"
    )


def test_gaps_are_empty_bars() -> None:
    chart = chart_of("day", {"2026-03-01": 4, "2026-03-03": 1})
    assert [(bar.first, bar.number) for bar in chart.bars] == [("2026-03-01", 4), ("2026-03-02", 0), ("2026-03-03", 1)]
    assert [bar.height for bar in chart.bars] == [HEIGHT, 0, HEIGHT / 4]
    assert chart.peak == 4
    assert chart.total == 5
    assert [bar.number for bar in chart.counted] == [1, 4]


@pytest.mark.parametrize(("unit", "last", "bars"), [("week", "2026-03-16", 3), ("month", "2026-05-02", 3)])
def test_steps_of_a_unit(unit: str, last: str, bars: int) -> None:
    first = "2026-03-02" if unit == "week" else "2026-03-01"
    chart = chart_of(unit, {first: 1, last if unit == "week" else "2026-05-01": 1})  # type: ignore[arg-type]
    assert len(chart.bars) == bars


def test_bars_are_bounded_and_within_the_picture() -> None:
    chart = chart_of("month", {"0001-01-01": 1, "2026-03-01": 2, "9999-12-31": 1})
    assert len(chart.bars) == MAX_PERIODS
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH for bar in chart.bars)
    assert chart_of("day", {}).bars == ()


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


MAX_WEIGHT = 250_000
"""Bytes, compressed, of everything that the first visit of all pages together loads."""


def test_vendored_files_are_listed_with_their_digest_and_licence() -> None:
    vendored = json.loads((STATIC / "vendor" / "vendored.json").read_text())
    files = {path.name for path in (STATIC / "vendor").iterdir()} - {"vendored.json"}
    assert set(vendored) == files
    for name, known in vendored.items():
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == known["sha256"]
        assert {"package", "version", "licence"} <= set(known)


async def test_a_file_is_kept_for_ever_under_the_digest_of_its_content() -> None:
    async with pages_over(MemoryService(FakeWire())) as http:
        answer = await http.get(asset("app.css"))
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"].startswith("text/css")
        old = await http.get(re.sub("static/[0-9a-f]+/", "static/0/", asset("app.css")))
        assert old.headers["cache-control"] == "no-cache"


async def test_no_file_outside_of_the_folder_is_served() -> None:
    async with pages_over(MemoryService(FakeWire())) as http:
        for name in ("nothing.css", "../door.py", "%2e%2e/door.py"):
            assert (await http.get(f"/admin/static/0/{name}")).status_code == 404


def test_all_files_together_are_light() -> None:
    weight = sum(len(gzip.compress(path.read_bytes())) for path in STATIC.rglob("*") if path.is_file())
    assert weight <= MAX_WEIGHT
