"""The recent window: which of a conversation's last turns are looked at. Pure."""

from agents.rules.index.memory_columns import MemoryColumns
from schemas.vectors import MemoryFilter

MIN_TURN_TOKENS = 40
"""Of one rendered memory: around its text alone `cl100k_base` counts 46 to 61. Says how many are worth a look."""

MAX_REPORTED_TURNS = 200
"""The last turns of a conversation that are in the context or named as dropped. Naming all would make the reply of a
long conversation grow without end."""

MAX_WINDOW_TURNS = 1000
"""Turns of one window, however large the budget: each is a record to read."""


def last_turns(roster: MemoryColumns, where: MemoryFilter, conversation: str | None, budget_tokens: int) -> list[str]:
    """The ids of the turns that a request is told about, oldest first; none without a conversation."""
    if conversation is None:
        return []
    return roster.latest(where, conversation, max(MAX_REPORTED_TURNS, estimate_turns(budget_tokens)))


def estimate_turns(room: int) -> int:
    """How many turns so many tokens may hold."""
    return min(room // MIN_TURN_TOKENS, MAX_WINDOW_TURNS)
