"""The modes and memories of one user, as confirmed by replies: the expected state of a service.

Each mode name is used once. The mode in the reply to a turn therefore identifies the mode of its memory, even if that
mode is renamed, re-embedded or deleted before the turn is processed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

DIMS = {"general": 384, "tiny32": 32, "tiny48": 48}
"""The embedders that modes name, with their dimensions."""

GENERAL = "general"
NOWHERE = ""
"""In place of a mode name: the memory must be forgotten."""

Json = dict[str, Any]


@dataclass(eq=False)
class KnownMode:
    """One mode with its current name. If it is deleted, its memories move to the heir or are forgotten without one."""

    name: str
    embedder: str
    is_deleted: bool = False
    heir: "KnownMode | None" = None

    @property
    def today(self) -> "KnownMode | None":
        if not self.is_deleted:
            return self
        return None if self.heir is None else self.heir.today


@dataclass(frozen=True)
class ModeCommand:
    command: str
    arguments: Json
    holds: Callable[[], None]


@dataclass
class Declarations:
    chance: Random
    default: KnownMode | None = None
    known: dict[str, KnownMode] = field(default_factory=lambda: {GENERAL: KnownMode(GENERAL, GENERAL)})
    kept: dict[str, str] = field(default_factory=dict)
    """The mode of each memory id when it was accepted or moved, by its name at that time."""
    _numbers: "count[int]" = field(default_factory=count)

    @property
    def living(self) -> list[KnownMode]:
        return [mode for mode in dict.fromkeys(self.known.values()) if not mode.is_deleted]

    def place(self, memory_id: str) -> KnownMode | None:
        """Return the expected mode of a memory; None if it must be forgotten."""
        mode = self.known.get(self.kept[memory_id])
        return mode and mode.today

    def shown(self) -> Json:
        modes = sorted((mode.name, mode.embedder) for mode in self.living)
        return {"modes": modes, "user_default": None if self.default is None else self.default.name}

    def declare(self) -> ModeCommand:
        mode, is_default = KnownMode(self._name(), self.chance.choice([*DIMS])), self.chance.random() < 0.5

        def holds() -> None:
            self.known[mode.name] = mode
            self.default = mode if is_default else self.default

        arguments = {"name": mode.name, "embedder": mode.embedder, "is_default": is_default}
        return ModeCommand("declare_mode", arguments, holds)

    def rename(self) -> ModeCommand:
        mode, name = self._own(), self._name()

        def holds() -> None:
            self.known[name] = mode
            mode.name = name

        return ModeCommand("rename_mode", {"name": mode.name, "new_name": name}, holds)

    def embed_anew(self) -> ModeCommand:
        mode = self._own()
        embedder = self.chance.choice([name for name in DIMS if name != mode.embedder])

        def holds() -> None:
            mode.embedder = embedder

        return ModeCommand("declare_mode", {"name": mode.name, "embedder": embedder}, holds)

    def delete_and_forget(self) -> ModeCommand:
        return self._delete(self._own(), None)

    def delete_and_move(self) -> ModeCommand:
        mode = self._own()
        return self._delete(mode, self.chance.choice([each for each in self.living if each is not mode]))

    def correct(self) -> ModeCommand:
        memory_id = self.chance.choice([kept_id for kept_id in self.kept if self.place(kept_id)])
        mode = self.chance.choice([mode for mode in self.living if mode is not self.place(memory_id)])

        def holds() -> None:
            self.kept[memory_id] = mode.name

        return ModeCommand("set_memory_mode", {"memory_id": memory_id, "mode": mode.name}, holds)

    def _delete(self, mode: KnownMode, heir: KnownMode | None) -> ModeCommand:
        def holds() -> None:
            mode.is_deleted, mode.heir = True, heir
            self.default = None if self.default is mode else self.default

        memories = "forget" if heir is None else f"move:{heir.name}"
        return ModeCommand("delete_mode", {"name": mode.name, "memories": memories}, holds)

    def _own(self) -> KnownMode:
        """Choose a mode other than `general`."""
        return self.chance.choice([mode for mode in self.living if mode.name != GENERAL])

    def _name(self) -> str:
        return f"mode{next(self._numbers)}"
