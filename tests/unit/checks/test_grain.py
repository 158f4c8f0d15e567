"""What `checks.grain` counts, on a file of a few lines."""

from pathlib import Path

import pytest

from checks.grain import LIMITS, Grain, exceeded, measure, measure_packages, totals

SOURCE = '''"""A module."""

import ast
from os import (
    path,
)

LIMIT = 1
"""A constant."""


def public(one: int) -> int:
    return _once(one) + _twice() + _twice()  # a reason


def _once(given: int) -> int:
    # noqa: a pragma
    return max(one for one in (given, LIMIT))


def _twice() -> int:
    assert (LIMIT, 2) == (1, 2)
    return 1
'''


@pytest.mark.parametrize(
    ("what", "count"),
    [
        ("lines", 23),
        ("imports", 4),
        ("code", 8),
        ("comments", 1),
        ("functions", 3),
        ("used_once", 1),
        ("ones", 2),
        ("tuple_asserts", 1),
    ],
)
def test_each_figure_is_counted(what: str, count: int) -> None:
    assert getattr(measure(SOURCE), what) == count


@pytest.fixture
def packages(tmp_path: Path) -> dict[str, Grain]:
    files = {
        "agents/__init__.py": "",
        "agents/small.py": "X = 1\n",
        "agents/large.py": "X = 1\n" * 51,
        "streams/one.py": "from agents.small import X\nfrom agents import large\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return measure_packages(tmp_path)


def test_init_files_are_no_modules(packages: dict[str, Grain]) -> None:
    assert packages["agents"].modules == 2


def test_a_small_module_has_few_lines_and_one_importer(packages: dict[str, Grain]) -> None:
    assert packages["agents"].small_modules == 1


def test_a_total_beyond_its_limit_is_named() -> None:
    limit = LIMITS["product"]["lines"]
    figures = {**LIMITS["product"], "lines": limit + 1}
    expected = f"product: lines {limit + 1:g}, and the limit is {limit:g}"
    assert exceeded({**LIMITS, "product": figures}) == [expected]


def test_fewer_comments_than_their_limit_are_named(packages: dict[str, Grain]) -> None:
    [line] = [line for line in exceeded(totals(packages)) if "comments" in line]
    assert line.startswith("product: comments % 0")
