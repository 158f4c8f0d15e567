"""The newest runs of one boundary among the records of a log that is read backwards, window by window. Pure."""

from collections.abc import Callable

from modestream_client.runs import Run
from pydantic import ValidationError

from agents.ports.jobs import RunPage


class RunsFound:
    """The runs of one boundary among the records of windows, which are read from the last to the first."""

    def __init__(self, key: bytes, admits: Callable[[Run], bool], limit: int, since_ms: int) -> None:
        self._key = key
        self._admits = admits
        self._limit = limit
        self._since_ms = since_ms
        self._earlier: list[Run] = []
        """Those of the window that is being read, oldest first."""
        self._later: dict[str, Run] = {}
        """Those of finished windows by id, newest first."""
        self._is_over = False
        self.is_complete = True
        """False once records were left unread."""

    @property
    def is_enough(self) -> bool:
        """True if no earlier window can have a run that is wanted."""
        return self._is_over or len(self._later) >= self._limit

    def take(self, key: bytes | None, value: bytes | None, timestamp_ms: int) -> None:
        """Take the next record of a window."""
        if timestamp_ms < self._since_ms:
            self._is_over = True
        elif key == self._key and value is None:
            # The user was forgotten here.
            self._earlier, self._is_over = [], True
        elif key == self._key and value is not None and (run := _parse(value)) is not None and self._admits(run):
            self._earlier.append(run)

    def finish_window(self) -> None:
        """Put the runs of a window behind those of later ones."""
        for run in reversed(self._earlier):
            self._later.setdefault(run.run_id, run)
        self._earlier = []

    def page(self) -> RunPage:
        """Return the newest runs; those of a window that was not read to its end are the newest there are."""
        self.finish_window()
        runs = list(self._later.values())
        return RunPage(runs[: self._limit], self.is_complete)


def _parse(value: bytes) -> Run | None:
    try:
        return Run.model_validate_json(value)
    except ValidationError:
        return None  # Of a later version, or written by something else.
