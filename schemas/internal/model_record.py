"""A model that vectors of a deployment were made with: `model.v1`, in its topic `service`, with a key for each model.

Written when a worker loads a model for the first time. Of several records of one model the first counts.
"""

from typing import Literal

from pydantic import BaseModel, Field

MODEL_KEY = b"model/"
"""What the keys of these records begin with; the space follows."""


class ModelRecord(BaseModel, frozen=True, populate_by_name=True):
    """`space` is the digest of the model's fingerprint without `files`, the digest of the files beside the model's."""

    schema_: Literal["model.v1"] = Field(default="model.v1", alias="schema")
    embedder: str
    space: str
    files: str

    @property
    def key(self) -> bytes:
        """The key of the record."""
        return MODEL_KEY + self.space.encode()
