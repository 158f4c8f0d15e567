"""Which release has written a deployment's data, and which may join it: `release.v1`, in the topic `service`.

Releases are numbered by what they write, from 1 on, which is 1.0.0.
"""

from typing import Literal

from pydantic import BaseModel, Field

RELEASE_KEY = b"release"
"""The key of the record; of several the one with the highest number counts."""


class Release(BaseModel, frozen=True, populate_by_name=True):
    """`number` is the highest that has written the data; a worker joins from the number `oldest` on."""

    schema_: Literal["release.v1"] = Field(default="release.v1", alias="schema")
    number: int
    oldest: int
