"""Stop long work between two of its pieces. Pure."""

from collections.abc import Callable

StopCondition = Callable[[], bool]
"""True to stop the work."""


class Stopped(Exception):
    """Raised by work that was told to stop."""


def never() -> bool:
    """Let the work come to its end."""
    return False


def stop_if(should_stop: StopCondition) -> None:
    """Raise Stopped if the work is to stop."""
    if should_stop():
        raise Stopped
