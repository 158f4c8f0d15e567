"""Modes as users declare them, what is declared for a boundary, and the fingerprint that tells vector spaces apart."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

GENERAL = "general"
"""The mode that every user has, and the preset that embeds it."""

ENGLISH_EMBEDDER = "all-MiniLM-L6-v2"
"""The model of `general` for English. Asked for by this name it embeds every language, as the classifier needs it."""

GENERAL_DIM = 384
"""Numbers in a vector of all-MiniLM-L6-v2."""

ModeSource = Literal["caller", "model", "project_default", "user_default", "fallback"]
Decay = Literal["fast", "medium", "slow", "none"]


class Mode(BaseModel):
    """A named cognitive register with the embedder that it pins. `project` is the only project that it exists in.

    A prefix that is None is the embedder's own. `formerly` holds the names that it had before, `embedded_since`
    the offset of the command that gave it another embedder, so that this one is carried out when it comes again.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    embedder: str
    embedding_dim: int
    description: str = ""
    query_prefix: str | None = None
    passage_prefix: str | None = None
    extraction_hints: str = ""
    decay: Decay = "medium"
    project: str | None = None
    formerly: tuple[str, ...] = ()
    embedded_since: int = -1


GENERAL_MODE = Mode(
    name=GENERAL,
    embedder=GENERAL,
    embedding_dim=GENERAL_DIM,
    description="Everything that belongs to no other mode",
)
"""What `general` is until its user declares it anew."""


class ModeDeclarations(BaseModel):
    """What one boundary has declared: the value of the table `modes`. Without any declaration there is `general`.

    `deleted` says of modes that are gone what became of their memories, as `delete_mode` says it.
    `corrections` counts the memories that were put into another mode by command; `counted` is the offset of the
    command that was counted last, so that one that comes again is not.
    """

    model_config = ConfigDict(frozen=True)

    modes: tuple[Mode, ...] = ()
    user_default: str | None = None
    project_defaults: dict[str, str] = Field(default_factory=dict)
    deleted: dict[str, str] = Field(default_factory=dict)
    corrections: int = 0
    counted: int = -1

    def find(self, name: str, project: str | None) -> Mode | None:
        """The mode of that name that holds in a project: the project's own before the user's."""
        own = [mode for mode in self.modes if mode.name == name and mode.project in (project, None)]
        return min(own, key=lambda mode: mode.project is None, default=GENERAL_MODE if name == GENERAL else None)

    def visible(self, projects: Iterable[str] | None) -> list[Mode]:
        """The modes that hold in any of these projects (None: in any at all), by name; `general` is among them."""
        admitted = None if projects is None else set(projects)
        seen = [mode for mode in self.modes if admitted is None or mode.project is None or mode.project in admitted]
        if all(mode.name != GENERAL or mode.project is not None for mode in seen):
            seen.append(GENERAL_MODE)
        return sorted(seen, key=lambda mode: (mode.name, mode.project or ""))

    def default(self, project: str | None) -> tuple[str, ModeSource]:
        """The mode of a turn that nobody chose one for, and why."""
        if project is not None and (name := self.project_defaults.get(project)):
            return name, "project_default"
        return (self.user_default, "user_default") if self.user_default else (GENERAL, "fallback")


class Fingerprint(BaseModel):
    """All that decides where a passage's vector lies. Another fingerprint is another vector space.

    A query prefix is not part of it: it moves questions, not memories. `tokens` names the projection of the token
    vectors, `token_dim` says how many numbers one has: None and 0 where the space keeps none. `others` names the model
    of texts that the embedder itself can't read, None where there is no such model.
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
    tokens: str | None = None
    token_dim: int = 0
    others: str | None = None

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that name the vector space; without token vectors those it had before these."""
        return _digest(self)


@lru_cache(256)
def _digest(fingerprint: Fingerprint) -> str:
    """Asked for several times a turn and a question. Not kept in the model: copies with updates would keep it."""
    return hashlib.sha256(fingerprint.model_dump_json(exclude_defaults=True).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """One mode's vectors by one embedder: what a collection holds."""

    mode: str
    fingerprint: Fingerprint

    @classmethod
    def held_by(cls, collection: str, fingerprint: Fingerprint) -> Self:
        """The space of a collection with this name and this fingerprint."""
        return cls(collection.removesuffix(collection_name("", fingerprint.digest)), fingerprint)

    @property
    def collection(self) -> str:
        """The collection's name: mode and fingerprint."""
        return collection_name(self.mode, self.fingerprint.digest)


def collection_name(mode: str, space: str) -> str:
    """The name of the collection that holds one mode's vectors of the space with this digest."""
    return f"{mode}-{space}"
