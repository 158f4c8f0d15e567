"""What the person at the console is told: short lines on standard error, so that standard output can be parsed."""

import sys
from collections.abc import Callable
from contextlib import suppress

Tell = Callable[[str], None]
"""Says one line to a person."""


def tell(line: str) -> None:
    """Say something at once. A console that is gone is no reason to stop."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)
