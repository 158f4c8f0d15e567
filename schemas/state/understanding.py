"""A language model's answer about one turn: one object, all fields optional.

The model gets this schema, docstrings of the classes included, and its answer is validated by it. The content is not
trusted: a mode must be declared, a quote must occur in the text, a category must exist.
"""

from typing import Annotated

from modestream_client.vocabulary import Confidence, InteractionMode, ItemKind
from pydantic import BaseModel, Field

ShortText = Annotated[str, Field(max_length=512)]

MAX_ENTRIES = 64
"""Entries of any list in an answer: a model that gives more repeats itself."""


class IntentionUpdate(BaseModel, frozen=True):
    """What the turn changes in what its user is after."""

    goals: Annotated[tuple[ShortText, ...], Field(max_length=MAX_ENTRIES)] = ()
    constraints: Annotated[tuple[ShortText, ...], Field(max_length=MAX_ENTRIES)] = ()
    decisions: Annotated[tuple[ShortText, ...], Field(max_length=MAX_ENTRIES)] = ()
    blocking_errors: Annotated[tuple[ShortText, ...], Field(max_length=MAX_ENTRIES)] = ()
    resolved: Annotated[tuple[ShortText, ...], Field(max_length=MAX_ENTRIES)] = ()


class FoundItem(BaseModel, frozen=True):
    """Something worth keeping by itself; `quote` is the part of the turn that says it, word for word.

    `replaces` are the ids of those of the earlier items that no longer hold since it was said. `mode` is the register
    of the item, one of the declared names, where it is another one than that of the turn; null otherwise.
    """

    kind: ItemKind
    text: Annotated[str, Field(max_length=2048)]
    quote: Annotated[str, Field(max_length=4096)]
    confidence: Confidence = 0.5
    replaces: Annotated[tuple[ShortText, ...], Field(max_length=MAX_ENTRIES)] = ()
    mode: ShortText | None = None


class FoundCategory(BaseModel, frozen=True):
    """One of the declared categories that the turn belongs to."""

    name: ShortText
    confidence: Confidence = 0.5


class Understanding(BaseModel, frozen=True, extra="ignore"):
    """One turn, understood. `mode` is the register, one of the declared names, or null when unclear."""

    topic: ShortText | None = None
    intent: ShortText | None = None
    operation: ShortText | None = None
    mode: ShortText | None = None
    entities: Annotated[tuple[ShortText, ...], Field(max_length=MAX_ENTRIES)] = ()
    interaction_mode: InteractionMode | None = None
    interaction_confidence: Confidence = 0.0
    items: Annotated[tuple[FoundItem, ...], Field(max_length=MAX_ENTRIES)] = ()
    categories: Annotated[tuple[FoundCategory, ...], Field(max_length=MAX_ENTRIES)] = ()
    intention: IntentionUpdate | None = None
