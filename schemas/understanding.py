"""What a language model answers about one turn: one object, every field of which may be missing.

It is the schema that the model is given, and what its answer is validated by. Nothing of it is trusted further: a mode
must be declared, a quotation must stand in the text, a category must exist.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from schemas.aims import MOST, IntentionUpdate, Short
from schemas.interaction import Confidence, InteractionMode
from schemas.memories import ItemKind


class FoundItem(BaseModel):
    """Something worth keeping by itself; `quote` is the part of the turn that says it, word for word."""

    model_config = ConfigDict(frozen=True)

    kind: ItemKind
    text: Annotated[str, Field(max_length=2048)]
    quote: Annotated[str, Field(max_length=4096)]
    confidence: Confidence = 0.5


class FoundCategory(BaseModel):
    """One of the declared categories that the turn belongs to."""

    model_config = ConfigDict(frozen=True)

    name: Short
    confidence: Confidence = 0.5


class Understanding(BaseModel):
    """One turn, understood. `mode` is the register, one of the declared names, or null when unclear."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    topic: Short | None = None
    intent: Short | None = None
    operation: Short | None = None
    mode: Short | None = None
    entities: Annotated[tuple[Short, ...], Field(max_length=MOST)] = ()
    interaction_mode: InteractionMode | None = None
    interaction_confidence: Confidence = 0.0
    items: Annotated[tuple[FoundItem, ...], Field(max_length=MOST)] = ()
    categories: Annotated[tuple[FoundCategory, ...], Field(max_length=MOST)] = ()
    intention: IntentionUpdate | None = None
