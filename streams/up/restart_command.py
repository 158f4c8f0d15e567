"""`streams restart`: has the supervisor of a data directory restart its workers one after another, and waits."""

import json
import os
import time
from pathlib import Path

from streams.up.console import PrintLine, print_line
from streams.up.layout import Layout
from streams.up.ownership import supervisor_of
from streams.up.supervisor import RESTART_SIGNAL

POLL_INTERVAL_S = 0.2
"""The pause between two looks at the progress."""


def run_restart(data_dir: Path, print_line: PrintLine = print_line) -> int:
    """Restart the workers. Return the exit code: 0 when all are back, 1 with the reason printed."""
    layout = Layout(data_dir.expanduser().resolve())
    if (supervisor := supervisor_of(layout)) is None:
        print_line(f"restart: no `up` and no `worker --processes` runs on {layout.data_dir}")
        return 1
    layout.rolling_restart.unlink(missing_ok=True)
    os.kill(supervisor, RESTART_SIGNAL)
    known = ""
    while supervisor_of(layout) == supervisor:
        state, worker = _progress(layout)
        if state == "done":
            return 0
        if state == "failed":
            print_line(f"restart: the {worker} is not back, the others are not restarted; see {layout.log(worker)}")
            return 1
        if worker != known:
            print_line(f"restarting the {worker}")
            known = worker
        time.sleep(POLL_INTERVAL_S)
    print_line("restart: the supervisor has ended")
    return 1


def _progress(layout: Layout) -> tuple[str, str]:
    try:
        found = json.loads(layout.rolling_restart.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "", ""
    return found["state"], found["worker"]
