"""Bodies of commands over HTTP: the arguments of the wire, without what the path says."""

from typing import Annotated

from modestream_client.arguments import ModeName
from modestream_client.vocabulary import InteractionMode
from pydantic import BaseModel, Field

from schemas.messages.turns import MAX_CONTENT_LENGTH


class NewName(BaseModel):
    """The new name of a mode."""

    new_name: ModeName


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


class ModeRemoval(BaseModel):
    """What becomes of the memories of a deleted mode: `forget`, or `move:<mode>`."""

    memories: Annotated[str, Field(pattern=r"^(forget|move:[a-z0-9_-]{1,64})\z")]


class Export(BaseModel):
    """What to export: by default all projects."""

    read_after: int | None = None
