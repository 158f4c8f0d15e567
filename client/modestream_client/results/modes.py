"""Modes, defaults, and suggestions of modes, as commands answer them."""

from typing import Any

from pydantic import BaseModel

from modestream_client.vocabulary import Decay


class ModeFields(BaseModel, frozen=True):
    """What a mode is declared with.

    `project` is the only project that it is declared in, None for all. A prefix of None is the embedder's own. No
    search finds the memories of a mode that is not `searchable`; no language model reads those of a `private` one.
    """

    name: str
    embedder: str
    embedding_dim: int
    description: str = ""
    query_prefix: str | None = None
    passage_prefix: str | None = None
    extraction_hints: str = ""
    decay: Decay = "medium"
    project: str | None = None
    searchable: bool = True
    private: bool = False


class ShownMode(ModeFields, frozen=True):
    """A declared mode; with `is_default`, turns of this project that name no mode get it.

    `project` is the only project that it is declared in, None for all. A prefix of None is the embedder's own.
    `former_embedder` is the one whose vectors are kept beside those of `embedder`, None if there is none.
    """

    is_default: bool = False
    former_embedder: str | None = None


class DefaultModes(BaseModel, frozen=True):
    """The modes of turns that name none: of the user, and of the project, which comes first. None: `general`."""

    user_default: str | None = None
    project_default: str | None = None


class AvailableEmbedder(BaseModel, frozen=True):
    """An embedder that a mode may name: vectors of `dim` numbers, from texts of up to `max_tokens`.

    `languages` is empty and `megabytes`, the size of its model, None where they are not known.
    """

    name: str
    dim: int
    languages: str = ""
    max_tokens: int | None = None
    megabytes: int | None = None


class DeclaredModes(DefaultModes, frozen=True):
    """The modes visible in a project, by name, the defaults, and the embedders that modes may name."""

    modes: tuple[ShownMode, ...]
    embedders: tuple[AvailableEmbedder, ...] = ()


class DeletedMode(BaseModel, frozen=True):
    """A deleted mode: how many of its memories were moved, and how many forgotten."""

    name: str
    moved: int = 0
    forgotten: int = 0


class SuggestedMode(BaseModel, frozen=True):
    """A group of `size` turns that fits no declared mode, with its telling words and example turns.

    `in_mode` is the mode that its turns have by default, `nearest` the declared mode that is nearest in meaning.
    `memory_ids` are its turns, for `set_memory_mode`.
    """

    name: str
    size: int
    terms: tuple[str, ...] = ()
    in_mode: str | None = None
    nearest: dict[str, Any] | None = None
    examples: tuple[dict[str, Any], ...] = ()
    memory_ids: tuple[str, ...] = ()


class ModeSuggestions(BaseModel, frozen=True):
    """Suggested modes, and the number of turns that were looked at."""

    suggestions: tuple[SuggestedMode, ...] = ()
    looked_at: int = 0
