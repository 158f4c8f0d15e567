"""The exit codes of `python -m streams`; `docs/operations.md` has the same table.

What a restart can't mend ends with 78, so that a supervisor does not try again.
"""

import os

EXIT_CODES = {
    os.EX_OK: "Done, or ended by SIGTERM or SIGINT.",
    1: "A command has run, and found or refused something; its output says what.",
    2: "Wrong options, or a command over a deployment could not begin.",
    os.EX_UNAVAILABLE: "Something it needs is not available: a port, a directory in use, a download, a part of `up`.",
    os.EX_SOFTWARE: "A defect, or a worker that must start again; its supervisor restarts it.",
    os.EX_CONFIG: "A setting, or a file that it names, is refused. A restart does not help.",
    130: "A command over a deployment was stopped by Ctrl-C; the same command continues.",
}
"""What each code means."""
