"""The embedder of `general` for users that declare none: `general_embedder.v1`, in the topic `service`.

Written by a worker whose setting names another one; of several records the last counts.
"""

from typing import Literal

from pydantic import BaseModel, Field

GENERAL_EMBEDDER_KEY = b"general_embedder"
"""The key of the record."""


class GeneralEmbedder(BaseModel, frozen=True, populate_by_name=True):
    """`embedder` is a preset, or a name of the setting `EMBEDDERS` of all workers; `former` is the one before it."""

    schema_: Literal["general_embedder.v1"] = Field(default="general_embedder.v1", alias="schema")
    embedder: str
    former: str = "general"
