"""The mode commands that are given most, with their arguments by name (CONTRACT §6).

Names and descriptions enter; modes leave, as the service shows them. The others are given by `command`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from schemas.modes import Decay, Mode
from streams.client.answers import Json, unreadable_reply
from streams.client.session import Session

Result = TypeVar("Result")


class ShownMode(Mode):
    """A declared mode. `is_default`: turns of this project that name no mode get it."""

    is_default: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredModes:
    """The modes that hold in a project, by name, and the defaults that are set."""

    modes: tuple[ShownMode, ...]
    user_default: str | None = None
    project_default: str | None = None


class ModeCommands(Session):
    """A session that declares modes and puts memories into them."""

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
        timeout: float | None = None,
    ) -> ShownMode:
        """Declare a mode, or change the one of that name; what is not given stays as it was.

        `embedder` is a preset or a configured name; another one than before has the mode's memories embedded again.
        With `for_project` the mode, and its being default, hold in this project alone.
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
        shown = await self.command("declare_mode", arguments, user_id=user_id, project_id=project_id, timeout=timeout)
        return _read(lambda: ShownMode.model_validate(shown))

    async def list_modes(
        self, *, user_id: str | None = None, project_id: str | None = None, timeout: float | None = None
    ) -> DeclaredModes:
        """The modes that hold in a project; every user has `general`."""
        shown = await self.command("list_modes", user_id=user_id, project_id=project_id, timeout=timeout)
        return _read(lambda: _modes(shown))

    async def set_memory_mode(
        self,
        memory_id: str,
        mode: str,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        timeout: float | None = None,
    ) -> Json:
        """Put a memory of this project into another mode, for good; returns its whole record.

        No language model moves it again. It is found by its words until its new vector is there.
        """
        arguments = {"memory_id": memory_id, "mode": mode}
        return await self.command("set_memory_mode", arguments, user_id=user_id, project_id=project_id, timeout=timeout)


def _modes(shown: Json) -> DeclaredModes:
    modes = tuple(ShownMode.model_validate(mode) for mode in shown["modes"])
    return DeclaredModes(modes, shown.get("user_default"), shown.get("project_default"))


def _read(read: Callable[[], Result]) -> Result:
    try:
        return read()
    except (ValueError, KeyError, TypeError) as problem:
        raise unreadable_reply(problem) from problem
