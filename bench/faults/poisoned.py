"""`python -m bench.faults.poisoned`: a worker whose process ends natively when it handles a turn with `MARKER`.

Stands for a defect in native code: the process gets a segmentation fault in the middle of the turn's own code.
"""

import faulthandler
import sys
from typing import Any

from agents.memory.remember import Remember
from schemas.messages.turns import Turn
from streams.observability.logs import configure_logs
from streams.settings import Settings
from streams.worker import run_worker

MARKER = "ends the process that reads it"

_turn = Remember.turn


def _fatal_turn(self: Remember, turn: Turn, *arguments: Any) -> Any:
    if MARKER in turn.content:
        faulthandler._sigsegv()  # type: ignore[attr-defined]  # noqa: SLF001 - the way to a real one
    return _turn(self, turn, *arguments)


if __name__ == "__main__":
    Remember.turn = _fatal_turn  # type: ignore[method-assign, assignment]
    settings = Settings()
    configure_logs(settings.log_level)
    sys.exit(run_worker(settings))
