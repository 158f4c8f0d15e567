"""One table of exit codes: in the code, in the documentation, and in what ends a process."""

import os
import re
from pathlib import Path

from streams.exit_codes import EXIT_CODES
from streams.runtime.process_end import DEFECT_CODE
from streams.up.ownership import SettingsRefused, StartRefused

ROOT = Path(__file__).parents[3]
OPERATIONS = (ROOT / "docs/operations.md").read_text()
RUNBOOK = (ROOT / "docs/runbook.md").read_text()


def test_operations_has_the_same_table() -> None:
    section = OPERATIONS.partition("### Exit codes\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", section, re.MULTILINE)
    assert {int(code): text for code, text in rows} == EXIT_CODES


def test_every_code_that_a_process_ends_with_is_in_it() -> None:
    sources = [
        file.read_text() for folder in ("operations", "streams", "gateway") for file in (ROOT / folder).rglob("*.py")
    ]
    named = {getattr(os, name) for source in sources for name in re.findall(r"\bos\.(EX_\w+)", source)}
    assert named | {DEFECT_CODE, StartRefused.exit_code, SettingsRefused.exit_code} <= EXIT_CODES.keys()


def test_run_book_names_codes_of_the_table() -> None:
    named = {int(code) for code in re.findall(r"\b(\d\d): ", RUNBOOK)}
    assert named == {os.EX_UNAVAILABLE, os.EX_SOFTWARE, os.EX_CONFIG}
