"""The recent window: the last turns of a conversation that a request considers. Pure."""

from agents.rules.index.memory_columns import MemoryColumns
from schemas.models.vectors import MemoryFilter

MIN_TURN_TOKENS = 40
"""Lower bound for one rendered memory: `cl100k_base` counts 46 to 61 around its text. Limits the turns to read."""

MAX_REPORTED_TURNS = 200
"""Last turns that a reply includes or reports as dropped. Reporting all would make the reply grow with the
conversation."""

MAX_WINDOW_TURNS = 1000
"""Maximum turns of a window, however large the budget: each is a record to read."""


def last_turns(columns: MemoryColumns, where: MemoryFilter, conversation: str | None, budget_tokens: int) -> list[str]:
    """Return the ids of the turns in the window, oldest first; none without a conversation."""
    if conversation is None:
        return []
    return columns.latest(where, conversation, max(MAX_REPORTED_TURNS, estimate_turns(budget_tokens)))


def estimate_turns(budget_tokens: int) -> int:
    """Return how many turns this many tokens may hold."""
    return min(budget_tokens // MIN_TURN_TOKENS, MAX_WINDOW_TURNS)
