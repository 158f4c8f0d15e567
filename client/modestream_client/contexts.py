"""Assembled prompts, parsed from replies. Unknown fields are ignored."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from modestream_client.answers import Notice, Reply, unreadable_reply
from modestream_client.assembled import AssembleResult, Breach

ChatMessage = dict[str, str]
"""`role` and `content`, as chat models take them."""


@dataclass(frozen=True, slots=True)
class Context:
    """A prompt within its token budget, and how it was made."""

    messages: list[ChatMessage]
    """System, examples, user with the memories as JSON, assistant."""
    references: tuple[str, ...]
    """Ids of the memories in the user message, by their places."""
    interaction_mode: str
    """The purpose of the query: `TASK`, `EXPLORATION`, `DEBUGGING`, `LEARNING` or `GENERAL`."""
    interaction_confidence: float
    sections: Mapping[str, list[str]]
    """Memory ids by section."""
    budget: Mapping[str, int]
    """Token limit of each section."""
    tokens: Mapping[str, int]
    """Tokens of each section; `total` counts all messages."""
    dropped: tuple[str, ...] = ()
    """Memories that were considered and left out, oldest first."""
    sticky: tuple[str, ...] = ()
    """Memories with priority over all others: safety, the user's corrections, constraints, current errors."""
    breaches: tuple[Breach, ...] = ()
    """Sticky memories that did not fit."""
    warnings: tuple[Notice, ...] = ()


def context_of(reply: Reply) -> Context:
    """Parse the reply to an assemble request. Raises `MemoryServiceError` if it violates the contract."""
    try:
        result = AssembleResult.model_validate(reply.result)
    except ValidationError as problem:
        raise unreadable_reply(problem) from problem
    return Context(
        messages=[{"role": message.role, "content": message.content} for message in result.messages],
        references=tuple(result.references),
        interaction_mode=result.interaction_mode,
        interaction_confidence=result.interaction_confidence,
        sections={str(name): ids for name, ids in result.sections.items()},
        budget={str(name): tokens for name, tokens in result.budget.items()},
        tokens={str(name): tokens for name, tokens in result.tokens.items()},
        dropped=tuple(result.dropped),
        sticky=tuple(result.sticky),
        breaches=tuple(result.breaches),
        warnings=reply.warnings,
    )
