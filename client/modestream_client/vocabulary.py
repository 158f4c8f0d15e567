"""The words of the wire contract that several records share: roles, types, states and modes."""

from typing import Annotated, Literal

from pydantic import Field

Role = Literal["user", "assistant", "system", "tool"]

MemoryType = Literal["episodic", "semantic", "procedural", "document", "state_object", "working"]

ItemKind = Literal[
    "fact", "preference", "decision", "constraint", "correction", "procedure", "open_question", "error", "safety",
    "goal",
]  # fmt: skip

EmbeddingStatus = Literal["not_applicable", "pending", "ready", "stale", "failed"]

ModeSource = Literal["caller", "model", "project_default", "user_default", "fallback"]
"""The origin of a turn's mode."""

Decay = Literal["fast", "medium", "slow", "none"]
"""How fast memories of a mode become less important."""

InteractionMode = Literal["TASK", "EXPLORATION", "DEBUGGING", "LEARNING", "GENERAL"]
"""What a turn is for. It decides the budgets of a context, never the embedder."""

ContextFormat = Literal["compact", "full"]
"""`compact`: days with one string for each memory; `full`: an object for each memory."""

Strategy = Literal["hybrid", "lexical", "cross_mode"]
"""How a question was answered."""

DEFAULT_BUDGET_TOKENS = 4000
"""Tokens of a context, for a request without a budget."""

Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A probability that is calibrated: of all answers with confidence p, about p are right."""

READING_COMMANDS = frozenset(
    {
        "get_category",
        "get_intention",
        "get_job",
        "get_memory",
        "health",
        "list_categories",
        "list_modes",
        "list_runs",
        "suggest_modes",
    }
)
"""Commands that change nothing a client can see: they need the permission `read`, all others `manage` or `operate`."""

QUERY_COMMANDS = READING_COMMANDS | {"get_pipeline", "list_revisions"}
"""Commands that the topic `retrieve` takes, whose records are kept for a day; the topic `commands` is kept for ever."""


def command_topic(command: str) -> str:
    """Return the topic, without its prefix, that a command is sent to.

    >>> command_topic("list_modes"), command_topic("declare_mode")
    ('retrieve', 'commands')
    """
    return "retrieve" if command in QUERY_COMMANDS else "commands"
