"""The most frequent mode commands, with typed arguments; `Session.command` sends all others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from modestream_client.answers import Json, unreadable_reply
from modestream_client.session import Session
from modestream_client.vocabulary import Decay

Result = TypeVar("Result")


class ShownMode(BaseModel, frozen=True):
    """A declared mode; with `is_default`, turns of this project that name no mode get it.

    `project` is the only project that it is declared in, None for all. A prefix of None is the embedder's own.
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
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredModes:
    """The modes visible in a project, by name, and the defaults."""

    modes: tuple[ShownMode, ...]
    user_default: str | None = None
    project_default: str | None = None


class ModeCommands(Session):
    """A session that declares modes and assigns memories to them."""

    async def declare_mode(
        self,
        name: str,
        embedder: str,
        *,
        description: str | None = None,
        query_prefix: str | None = None,
        passage_prefix: str | None = None,
        extraction_hints: str | None = None,
        decay: Decay | None = None,
        is_default: bool = False,
        for_project: bool = False,
        user_id: str | None = None,
        project_id: str | None = None,
        principal: str | None = None,
        timeout: float | None = None,
    ) -> ShownMode:
        """Declare a mode, or change the given fields of an existing one.

        `embedder` is a preset or a configured name; a change re-embeds the mode's memories. With `for_project` the
        mode and its default hold in this project alone.
        """
        arguments = {
            "name": name,
            "embedder": embedder,
            "description": description,
            "query_prefix": query_prefix,
            "passage_prefix": passage_prefix,
            "extraction_hints": extraction_hints,
            "decay": decay,
            "is_default": is_default,
            "for_project": for_project,
        }
        result = await self.command(
            "declare_mode", arguments, user_id=user_id, project_id=project_id, principal=principal, timeout=timeout
        )
        return _read(lambda: ShownMode.model_validate(result))

    async def list_modes(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        principal: str | None = None,
        timeout: float | None = None,
    ) -> DeclaredModes:
        """Return the modes visible in a project; every user has `general`."""
        result = await self.command(
            "list_modes", user_id=user_id, project_id=project_id, principal=principal, timeout=timeout
        )
        return _read(lambda: _modes(result))

    async def set_memory_mode(
        self,
        memory_id: str | Sequence[str],
        mode: str,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        principal: str | None = None,
        timeout: float | None = None,
    ) -> Json:
        """Assign a memory of this project to another mode; return its whole record. For several: `{"moved": n}`.

        No language model changes the mode again. Until the new vector exists, lexical search finds the memory.
        """
        named = {"memory_id": memory_id} if isinstance(memory_id, str) else {"memory_ids": list(memory_id)}
        arguments = {**named, "mode": mode}
        return await self.command(
            "set_memory_mode", arguments, user_id=user_id, project_id=project_id, principal=principal, timeout=timeout
        )


def _modes(result: Json) -> DeclaredModes:
    modes = tuple(ShownMode.model_validate(mode) for mode in result["modes"])
    return DeclaredModes(modes, result.get("user_default"), result.get("project_default"))


def _read(read: Callable[[], Result]) -> Result:
    try:
        return read()
    except (ValueError, KeyError, TypeError) as problem:
        raise unreadable_reply(problem) from problem
