"""The end of a worker that can't go on: at once, so that nothing unfinished is acknowledged or written."""

import os

DEFECT_CODE = 70
"""Exit code of a defect, `EX_SOFTWARE`: the supervisor starts the worker again."""


def end_process() -> None:
    """Exit at once, without a cleanup; unacknowledged events are delivered again."""
    os._exit(DEFECT_CODE)


def end_refused() -> None:
    """Exit at once with the code of refused settings: the supervisor does not start the worker again."""
    os._exit(os.EX_CONFIG)
