"""The command `modestream`: the application's command line, in processes of its own."""

import os
import sys
from pathlib import Path

APPLICATION = Path(__file__).parent / "application"
"""Folders with names such as `agents`, which other distributions have too: they are on no other program's path."""


def main() -> None:
    """Run the command line with the application first on the path, here and in the processes that it starts."""
    sys.path.insert(0, str(APPLICATION))
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join((str(APPLICATION), *([inherited] if inherited else [])))
    # Otherwise a folder `agents` where the command is run would come before the application's.
    os.environ["PYTHONSAFEPATH"] = "1"
    from streams.__main__ import main as run_command  # noqa: PLC0415

    run_command()
