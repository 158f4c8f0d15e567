"""The table of exit codes in the documentation has all that end a process."""

import os
import re
from pathlib import Path

from streams.runtime.fence import DEFECT_CODE
from streams.up.ownership import SettingsRefused, StartRefused

ROOT = Path(__file__).parents[3]
OPERATIONS = (ROOT / "docs/operations.md").read_text()
RUNBOOK = (ROOT / "docs/runbook.md").read_text()


def test_every_code_that_a_process_ends_with_is_in_it() -> None:
    section = OPERATIONS.partition("### Exit codes\n")[2].partition("\n## ")[0]
    documented = {int(code) for code in re.findall(r"^\| (\d+) \| .+ \|$", section, re.MULTILINE)}
    sources = [
        file.read_text() for folder in ("operations", "streams", "gateway") for file in (ROOT / folder).rglob("*.py")
    ]
    named = {getattr(os, name) for source in sources for name in re.findall(r"\bos\.(EX_\w+)", source)}
    assert named | {DEFECT_CODE, StartRefused.exit_code, SettingsRefused.exit_code} <= documented


def test_run_book_names_codes_of_the_table() -> None:
    named = {int(code) for code in re.findall(r"\b(\d\d): ", RUNBOOK)}
    assert named == {os.EX_UNAVAILABLE, os.EX_SOFTWARE, os.EX_CONFIG}
