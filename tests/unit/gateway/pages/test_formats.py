"""Formats of pages and what they escape: texts with marks, charts, addresses of files."""

import doctest
import gzip
import hashlib
import json
import re

import pytest

from gateway.pages import charts, formats, refill, texts
from gateway.pages.charts import HEIGHT, MAX_PERIODS, WIDTH, chart_of
from gateway.pages.pages import STATIC, asset
from gateway.pages.routes import ask, pipelines
from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over


def test_examples_hold() -> None:
    for module in (charts, formats, refill, texts, ask, pipelines):
        assert doctest.testmod(module).failed == 0


def test_a_time_is_escaped() -> None:
    assert "<b>" not in formats.moment("<b>2026")


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


async def test_a_file_is_compressed_for_those_that_take_it() -> None:
    async with pages_over(MemoryService(FakeWire())) as http:
        packed = await http.get(asset("app.css"), headers={"Accept-Encoding": "gzip"})
        plain = await http.get(asset("app.css"), headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == plain.content == (STATIC / "app.css").read_bytes()
    assert "content-encoding" not in plain.headers


async def test_no_file_outside_of_the_folder_is_served() -> None:
    async with pages_over(MemoryService(FakeWire())) as http:
        for name in ("nothing.css", "../door.py", "%2e%2e/door.py"):
            assert (await http.get(f"/admin/static/0/{name}")).status_code == 404


def test_all_files_together_are_light() -> None:
    weight = sum(len(gzip.compress(path.read_bytes())) for path in STATIC.rglob("*") if path.is_file())
    assert weight <= MAX_WEIGHT
