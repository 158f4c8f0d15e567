"""Which dead letters a person has dealt with: in a file of the gateway, so that a restart keeps them."""

import logging
from pathlib import Path

from gateway.service.calls import Refused

log = logging.getLogger(__name__)

MAX_DISMISSALS = 10_000
"""Letters in the file, the latest: as many as are listed."""


class Dismissals:
    """Letters, each named by its time and its position; without a `file` they last as long as the process.

    The time is part of the name: a topic that was made again begins at offset 0.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._letters = set(file.read_text().splitlines()) if file is not None and file.exists() else set()

    def __contains__(self, letter: str) -> bool:
        return letter in self._letters

    def change(self, letter: str, *, dismissed: bool) -> None:
        """Add or remove a letter. Raises Refused, `unavailable`, if the file can't be written: nothing changes then."""
        changed = self._letters | {letter} if dismissed else self._letters - {letter}
        # In the order of time: until the year 2286 all of these numbers have thirteen digits.
        latest = sorted(changed)[-MAX_DISMISSALS:]
        if self._file is not None:
            written = self._file.with_name(f"{self._file.name}.new")
            try:
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                written.write_text("".join(f"{each}\n" for each in latest))
                written.replace(self._file)
            except OSError as problem:
                log.error("dismissals can't be kept: %s", problem)  # noqa: TRY400
                raise Refused("unavailable", "this gateway can't store dismissals of letters") from None
        self._letters = set(latest)
