"""How soon a child that ended is started again."""

INITIAL_RESTART_BACKOFF_S = 0.2
"""The pause before the second start in a row."""

MAX_RESTART_BACKOFF_S = 5.0
"""The longest pause: whatever was in the way may be gone again."""

STABLE_AFTER_S = 10.0
"""A child that lived so long did not end because of its start, and is started again at once."""


class RestartBackoff:
    """Remembers how many starts in a row were short."""

    def __init__(self) -> None:
        self._short = 0

    @property
    def short_in_a_row(self) -> int:
        """How many children ended quickly, one after another, the last one included."""
        return self._short

    def pause_after(self, lived_s: float) -> float:
        """The seconds to wait, now that a child has ended after `lived_s` seconds."""
        self._short = 0 if lived_s >= STABLE_AFTER_S else self._short + 1
        return (
            0.0
            if self._short <= 1
            else min(MAX_RESTART_BACKOFF_S, INITIAL_RESTART_BACKOFF_S * 2.0 ** (self._short - 2))
        )
