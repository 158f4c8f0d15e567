"""Types shared by several records of the wire contract: roles, types, states, modes, and fields with their limits."""

import unicodedata
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Discriminator, Field, Tag

Role = Literal["user", "assistant", "system", "tool"]

MemoryType = Literal["episodic", "semantic", "procedural", "document", "state_object", "working"]

ItemKind = Literal[
    "fact", "preference", "decision", "constraint", "correction", "procedure", "open_question", "error", "safety",
    "goal",
]  # fmt: skip

EmbeddingErrorCode = Literal["model_missing", "unknown_mode", "text_refused", "vector_refused"]
"""Why a memory has no vector: its model is not loaded, its mode was deleted, the model can't embed its text, the index
refuses its vector."""

EmbeddingStatus = Literal["not_applicable", "pending", "ready", "stale", "failed"]

ResourceStatus = Literal["pending", "ready", "failed"]
"""What became of reading a file."""

ModeSource = Literal["caller", "model", "project_default", "user_default", "fallback"]
"""The origin of a turn's mode."""

Decay = Literal["fast", "medium", "slow", "none"]
"""How fast memories become less important."""

DEFAULT_DECAY: Decay = "medium"


DecayByType = Annotated[dict[MemoryType, Decay], Field(min_length=1)]
"""The decay of memories by their type; types that are not named have `DEFAULT_DECAY`."""

ModeDecay = Annotated[
    Annotated[Decay, Tag("as a whole")] | Annotated[DecayByType, Tag("by type")],
    # The names have spaces, to keep them out of an error's field.
    Discriminator(lambda value: "by type" if isinstance(value, dict) else "as a whole"),
]
"""The decay of a mode's memories: one for all of them, or by type."""

PromptedStep = Literal["understand", "distil", "categorize"]
"""A step whose prompt a mode may extend: understanding a turn, distilling a cluster of turns, categorising."""

InteractionMode = Literal["TASK", "EXPLORATION", "DEBUGGING", "LEARNING", "GENERAL"]
"""The purpose of a turn. It decides the budgets of a context, never the embedder."""

ContextFormat = Literal["compact", "full"]
"""`compact`: days with one string for each memory; `full`: an object for each memory."""

Strategy = Literal["hybrid", "lexical", "cross_mode"]
"""How a question was answered."""

DEFAULT_BUDGET_TOKENS = 4000
"""Tokens of a context, for a request without a budget."""

Confidence = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A calibrated probability: of all answers with confidence p, about p are right."""


MIN_MOMENT = datetime.min.replace(tzinfo=UTC)
MAX_MOMENT = datetime.max.replace(tzinfo=UTC)
"""The years 1 to 9999 in UTC: the range of times on the wire."""


def _iso(value: object) -> object:
    """Refuse numbers, which Pydantic would read as seconds since the epoch."""
    if isinstance(value, datetime) or (isinstance(value, str) and value[4:5] == "-"):
        return value
    raise ValueError("a time is ISO-8601 with a zone, such as 2026-03-01T09:30:00Z")


def _within_range(moment: datetime) -> datetime:
    """Refuse times that a zone moves out of the calendar: they have no form in UTC."""
    if MIN_MOMENT <= moment <= MAX_MOMENT:
        return moment
    raise ValueError("a time lies in the years 1 to 9999 in UTC")


Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_iso), AfterValidator(_within_range)]
"""A time: ISO-8601 with a zone, nothing else (docs/contract.md)."""

MAX_ID_LENGTH = 512
"""Characters of an id chosen by a producer."""

Identifier = Annotated[str, Field(min_length=1, max_length=MAX_ID_LENGTH)]

MAX_CATEGORY_NAME_CHARS = 64
"""Maximum characters of a category's name; docs/contract.md sets no limit."""

INVISIBLE_CATEGORIES = ("Cc", "Zl", "Zp", "Cs")
"""Unicode categories of control characters, line ends and surrogates: a name fits on one line of a list."""


def _printable(value: str) -> str:
    if not value.strip() or len(value) > MAX_CATEGORY_NAME_CHARS:
        raise ValueError(f"a name has 1 to {MAX_CATEGORY_NAME_CHARS} characters, not only white space")
    if any(unicodedata.category(character) in INVISIBLE_CATEGORIES for character in value):
        raise ValueError("control characters are not allowed")
    return value


CategoryName = Annotated[str, AfterValidator(_printable)]
"""Letters of any script, spaces and symbols; case-sensitive."""

CategoryDescription = Annotated[str, Field(max_length=4096)]
"""Description of a category's content, in the words of a user or an operator."""

StepId = Annotated[str, Field(pattern=r"^(memorize|retrieve|evolve)\.[a-z][a-z0-9_]{0,63}\z")]
"""The name of a step, with that of its pipeline: `retrieve.rerank`."""
