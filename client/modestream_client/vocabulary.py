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
