"""Bodies and queries of the routes that are no operation of the table."""

from typing import Annotated

from modestream_client.arguments import ModeName
from modestream_client.vocabulary import InteractionMode
from pydantic import BaseModel, Field

from schemas.messages.turns import MAX_CONTENT_LENGTH


class MemoryChange(BaseModel):
    """One change of a memory: `mode` moves it, `text` edits its turn, `interaction_mode` corrects what it is for.

    `searchable` and `private`, or one of them, say whether searches find it, and whether a language model may read it.
    """

    mode: ModeName | None = None
    text: Annotated[str, Field(min_length=1, max_length=MAX_CONTENT_LENGTH)] | None = None
    interaction_mode: InteractionMode | None = None
    searchable: bool | None = None
    private: bool | None = None


class Confirmed(BaseModel):
    """The name again, of what is to be forgotten."""

    confirm: Annotated[str, Field(description="The same name again.")]


class Export(BaseModel):
    """What to export: by default all projects."""

    read_after: int | None = None
