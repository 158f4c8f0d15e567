"""Every folder of tests has a part of its own in the Makefile: none is forgotten by `make test`."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ELSEWHERE = {"frameworks"}
"""Folders that `tests/wheels` runs, in environments with what they test."""

FOLDERS = sorted(
    {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")} - ELSEWHERE
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_folder_has_a_part(folder: str) -> None:
    rules = [line.partition(":")[0].split() for line in (ROOT / "Makefile").read_text().splitlines() if ":" in line]
    assert any(f"test-{folder}" in rule for rule in rules)
