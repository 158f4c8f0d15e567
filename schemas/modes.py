"""Modes as users declare them, embedders as presets, and the fingerprint that tells vector spaces apart."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

GENERAL = "general"
"""The mode that every user has."""

ModeSource = Literal["caller", "model", "project_default", "user_default", "fallback"]
Decay = Literal["fast", "medium", "slow", "none"]


class Mode(BaseModel):
    """A named cognitive register with the embedder that it pins."""

    model_config = ConfigDict(frozen=True)

    name: str
    embedder: str
    embedding_dim: int
    description: str = ""
    query_prefix: str = ""
    passage_prefix: str = ""
    decay: Decay = "medium"
    is_default: bool = False


class Fingerprint(BaseModel):
    """All that decides where a passage's vector lies. Another fingerprint is another vector space.

    A query prefix is not part of it: it moves questions, not memories.
    """

    model_config = ConfigDict(frozen=True)

    embedder: str
    file_sha256: str
    precision: str
    dim: int
    pooling: str
    normalize: bool
    passage_prefix: str
    max_tokens: int

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that name the vector space."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """One mode's vectors by one embedder: what a collection holds."""

    mode: str
    fingerprint: Fingerprint

    @property
    def collection(self) -> str:
        """The collection's name: mode and fingerprint."""
        return f"{self.mode}-{self.fingerprint.digest}"
