"""Modes, the embedders that they can name, a boundary's declarations, and the fingerprint of a vector space."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, Self

from modestream_client.results import ModeFields
from modestream_client.vocabulary import DEFAULT_DECAY, Decay, MemoryType, ModeSource
from pydantic import BaseModel, Field


class ForgottenBefore(BaseModel, frozen=True):
    """The end of a partition's log when a user was forgotten, and the time of that command in milliseconds.

    By offset and by timestamp: a recreated topic starts at offset 0 again, and its new records have later timestamps.
    """

    offset: int
    at_ms: int

    def covers(self, offset: int, timestamp_ms: int) -> bool:
        """True if a record of the user at this offset was written before the user was forgotten."""
        return offset < self.offset and timestamp_ms <= self.at_ms


GENERAL = "general"
"""The mode that every user has, and its embedder preset."""

ENGLISH_EMBEDDER = "all-MiniLM-L6-v2"
"""The model of `general` for English. As an embedder of this name it embeds every language, as the classifier needs."""

GENERAL_DIM = 384
"""Dimension of all-MiniLM-L6-v2."""


class FormerEmbedder(BaseModel, frozen=True):
    """A mode's former embedder: its name, and the prefixes of its vectors and questions."""

    embedder: str
    embedding_dim: int
    query_prefix: str | None = None
    passage_prefix: str | None = None


class Visibility(BaseModel, frozen=True):
    """Two hard filters.

    Not `searchable`: found by no search, in no context, and without a vector. `private`: no language model reads it.
    """

    searchable: bool = Field(default=True, exclude_if=lambda searchable: searchable)
    private: bool = Field(default=False, exclude_if=lambda private: not private)

    def limited_by(self, other: "Visibility") -> "Visibility":
        """Return the visibility that both allow."""
        if other in (EVERYWHERE, self):
            return self
        return Visibility(searchable=self.searchable and other.searchable, private=self.private or other.private)

    def changed(self, *, searchable: bool | None, private: bool | None) -> Self:
        """Return it with other values; None keeps a value."""
        changes = {"searchable": searchable, "private": private}
        return self.model_copy(update={name: value for name, value in changes.items() if value is not None})


EVERYWHERE = Visibility()
"""The visibility of a memory without filters."""


def is_everywhere(visibility: Visibility) -> bool:
    """True if nothing is filtered."""
    return visibility is EVERYWHERE or (visibility.searchable and not visibility.private)


class Mode(ModeFields, frozen=True):
    """A named register with a fixed embedder.

    `formerly` holds earlier names. `embedded_since` is the offset of the command that changed the vector space, and
    `filtered_since` of the one that changed the visibility, so that a redelivered command runs again. `former` is the
    embedder whose vectors are kept in addition to those of the declared one.
    """

    formerly: tuple[str, ...] = ()
    embedded_since: int = -1
    filtered_since: int = Field(default=-1, exclude_if=lambda offset: offset == -1)
    former: FormerEmbedder | None = Field(default=None, exclude_if=lambda former: former is None)

    @property
    def with_former(self) -> "Mode | None":
        """The mode as it was with its former embedder; None without one."""
        return None if self.former is None else self.model_copy(update={**dict(self.former), "former": None})

    @property
    def as_former(self) -> FormerEmbedder:
        """The embedder's record when another one is declared."""
        return FormerEmbedder.model_validate(self, from_attributes=True)

    def decay_of(self, memory_type: MemoryType) -> Decay:
        return self.decay if isinstance(self.decay, str) else self.decay.get(memory_type, DEFAULT_DECAY)

    @property
    def visibility(self) -> Visibility:
        """The filters of all memories of the mode."""
        return Visibility(searchable=self.searchable, private=self.private)


GENERAL_MODE = Mode(
    name=GENERAL, embedder=GENERAL, embedding_dim=GENERAL_DIM, description="Everything that belongs to no other mode"
)
"""`general` for users that have not declared it, unless the deployment has chosen another embedder for them."""


def general_by(embedder: "EmbedderDescription", former: FormerEmbedder = GENERAL_MODE.as_former) -> Mode:
    """Return `general` as a deployment gives it to users that have not declared it, by its own choice of an embedder.

    Users with vectors of the `former` one are served by them until all others are ready.
    """
    chosen = {"embedder": embedder.name, "embedding_dim": embedder.dim, "former": former}
    return GENERAL_MODE.model_copy(update=chosen)


class ModeDeclarations(BaseModel, frozen=True):
    """The declarations of one boundary: the value of the table `modes`. `general` exists without any declaration.

    `deleted` holds for each deleted mode the argument `memories` of its `delete_mode`. `corrections` counts memories
    moved to another mode by command; `counted` is the offset of the last counted command, so that a redelivered one is
    not counted again. `general` is the deployment's default for that mode: it is not stored. `forgotten_turns` are
    those from before the user was forgotten: one handled later had a mode that is gone.
    """

    modes: tuple[Mode, ...] = ()
    user_default: str | None = None
    project_defaults: dict[str, str] = Field(default_factory=dict)
    deleted: dict[str, str] = Field(default_factory=dict)
    corrections: int = 0
    counted: int = -1
    forgotten_turns: ForgottenBefore | None = Field(default=None, exclude_if=lambda forgotten: forgotten is None)
    general: Mode = Field(default=GENERAL_MODE, exclude=True)

    def find(self, name: str, project: str | None) -> Mode | None:
        """Return the mode of that name that is valid in a project: the project's own before the user's."""
        own = [mode for mode in self.modes if mode.name == name and mode.project in (project, None)]
        return min(own, key=lambda mode: mode.project is None, default=self.general if name == GENERAL else None)

    def visible(self, projects: Iterable[str] | None) -> list[Mode]:
        """Return the modes that are valid in any of these projects (None: in any), by name, `general` included."""
        admitted = None if projects is None else set(projects)
        modes = [mode for mode in self.modes if admitted is None or mode.project is None or mode.project in admitted]
        if all(mode.name != GENERAL or mode.project is not None for mode in modes):
            modes.append(self.general)
        return sorted(modes, key=lambda mode: (mode.name, mode.project or ""))

    def default(self, project: str | None) -> tuple[str, ModeSource]:
        """Return the mode of a turn without an explicit one, and its source."""
        if project is not None and (name := self.project_defaults.get(project)):
            return name, "project_default"
        return (self.user_default, "user_default") if self.user_default else (GENERAL, "fallback")


class Fingerprint(BaseModel, frozen=True):
    """All parameters that determine a passage's vector. Another fingerprint is another vector space.

    The query prefix is not part of it: it moves queries, not memories. `tokens` names the projection of the token
    vectors and `token_dim` is their dimension, None and 0 for a space without token vectors. `others` names the model
    of texts that the embedder itself can't read, None without one. `files` is the digest of its tokenizer and external
    weights; None if they equal those of the deployment's first vectors. `passages` names the rules by which long texts
    are cut, None for an embedder that reads each text as one.
    """

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
    files: str | None = None
    passages: str | None = None

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that name the vector space; fields with default values don't change them."""
        return _digest(self)


@lru_cache(256)
def _digest(fingerprint: Fingerprint) -> str:
    """Cached, as it is needed several times per turn and query. Not in the model: copies with updates would keep it."""
    return hashlib.sha256(fingerprint.model_dump_json(exclude_defaults=True).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """One mode's vectors by one embedder: the content of a collection."""

    mode: str
    fingerprint: Fingerprint

    @classmethod
    def held_by(cls, collection: str, fingerprint: Fingerprint) -> Self:
        return cls(collection.removesuffix(collection_name("", fingerprint.digest)), fingerprint)

    @property
    def collection(self) -> str:
        """The collection's name: mode and fingerprint."""
        return collection_name(self.mode, self.fingerprint.digest)


def collection_name(mode: str, space: str) -> str:
    """Return the name of the collection of one mode's vectors in the space with this digest."""
    return f"{mode}-{space}"


Pooling = Literal["mean", "cls"]
"""How token states are pooled into one vector: their mean, or the state of the first token."""


class EmbedderDescription(BaseModel, frozen=True):
    """Properties of an embedder known before its model is loaded. `name` is the one that modes store.

    `languages` are those that it reads, empty if unknown; texts are cut to `max_tokens`, None: the tokenizer's own
    limit; `megabytes` is the size of the model's file, None if unknown. `refused` says why no mode may name it, and is
    empty otherwise.
    """

    name: str
    dim: int
    query_prefix: str = ""
    passage_prefix: str = ""
    languages: str = ""
    max_tokens: int | None = None
    megabytes: int | None = None
    refused: str = ""


class ConfiguredEmbedder(BaseModel, frozen=True, extra="forbid"):
    """One entry of the setting `EMBEDDERS`: a folder with an ONNX model and its tokenizer."""

    path: Path
    dim: int = Field(ge=1)
    pooling: Pooling = "mean"
    normalize: bool = True
    query_prefix: str = ""
    passage_prefix: str = ""
    max_tokens: int | None = Field(default=None, ge=1)
    model_file: str = "model.onnx"


class ModeUsage(BaseModel, frozen=True):
    """How a mode was used in a week.

    `cross_mode_questions`: those of the `questions` that searched other modes too. `corrections`: memories that a
    command has moved out of the mode. `useful`, `not_useful`: rated references of contexts in it.
    """

    questions: int = 0
    cross_mode_questions: int = 0
    corrections: int = 0
    useful: int = 0
    not_useful: int = 0

    def plus(self, other: "ModeUsage") -> "ModeUsage":
        return ModeUsage(**{name: getattr(self, name) + getattr(other, name) for name in ModeUsage.model_fields})


MAX_USAGE_WEEKS = 26
"""Weeks of a user's history, the latest ones: half a year."""

MAX_USAGE_MODES = 64
"""Modes of a week in a user's history, the first ones: its row has at most about 100 KB."""


class UsageHistory(BaseModel, frozen=True):
    """How a user's modes were used: the value of the table `usage`.

    `weeks` is by the number of the week and by mode; `counted` has, by topic, the offset of the last record that is in
    it, so that a redelivered one is not counted again.
    """

    weeks: dict[int, dict[str, ModeUsage]] = Field(default_factory=dict)
    counted: dict[str, int] = Field(default_factory=dict)

    def has(self, topic: str, offset: int) -> bool:
        """True if a record, or a later one of its topic, is counted."""
        return offset <= self.counted.get(topic, -1)

    def with_record(self, topic: str, offset: int, week: int, modes: Mapping[str, ModeUsage]) -> "UsageHistory":
        """Return the history with what one record adds to a week."""
        of_week = dict(self.weeks.get(week, {}))
        for mode, usage in modes.items():
            if mode in of_week or len(of_week) < MAX_USAGE_MODES:
                of_week[mode] = of_week.get(mode, ModeUsage()).plus(usage)
        weeks = sorted({**self.weeks, week: of_week}.items())[-MAX_USAGE_WEEKS:]
        counted = {**self.counted, topic: max(offset, self.counted.get(topic, -1))}
        return UsageHistory(weeks=dict(weeks), counted=counted)
