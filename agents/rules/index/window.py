"""The recent window: the last turns of a conversation that a request considers. Pure."""

from collections.abc import Mapping

from modestream_client.vocabulary import ContextFormat

from agents.rules.index.memory_columns import MemoryColumns
from schemas.models.vectors import MemoryFilter

MIN_ENTRY_TOKENS: Mapping[ContextFormat, int] = {"compact": 12, "full": 40}
"""Tokens of a short entry: around its text `cl100k_base` counts 9 in the compact format, 46 to 61 in the full one.
Limits the turns to read."""

MAX_REPORTED_TURNS = 200
"""Last turns that a reply includes or reports as dropped. Reporting all would make the reply grow with the
conversation."""

MAX_WINDOW_TURNS = 1000
"""Maximum turns of a window, however large the budget: each is a record to read."""


def last_turns(columns: MemoryColumns, where: MemoryFilter, conversation: str | None, count: int = 0) -> list[str]:
    """Return the ids of the last `count` turns or more, oldest first; none without a conversation."""
    if conversation is None:
        return []
    return columns.latest(where, conversation, max(MAX_REPORTED_TURNS, count))


def estimate_turns(tokens: int, context_format: ContextFormat) -> int:
    """Return how many turns this many tokens may hold."""
    return min(tokens // MIN_ENTRY_TOKENS[context_format], MAX_WINDOW_TURNS)
