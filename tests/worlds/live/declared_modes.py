"""What one user has declared and said, as the replies tell it: the expectation that a service is held against.

No name of a mode is used twice. So the mode that an accepted turn is answered with tells for good whose memories it
belongs to, however that mode is renamed, embedded and deleted while the turn is on its way.
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
"""In place of a mode's name: the memory is forgotten."""

Json = dict[str, Any]


@dataclass(eq=False)
class Known:
    """One mode through all its names. Once it is deleted its memories are the heir's, or forgotten without one."""

    name: str
    embedder: str
    is_deleted: bool = False
    heir: "Known | None" = None

    @property
    def today(self) -> "Known | None":
        """Where its memories are now; None: nowhere."""
        if not self.is_deleted:
            return self
        return None if self.heir is None else self.heir.today


@dataclass(frozen=True)
class Order:
    """A command, and what holds once it is answered `ok`."""

    command: str
    arguments: Json
    holds: Callable[[], None]


@dataclass
class Declarations:
    """The modes of one user, and the mode of each memory."""

    chance: Random
    default: Known | None = None
    known: dict[str, Known] = field(default_factory=lambda: {GENERAL: Known(GENERAL, GENERAL)})
    kept: dict[str, str] = field(default_factory=dict)
    """By memory id the mode that the memory was accepted in, or put into, by a name that it had then."""
    _numbers: "count[int]" = field(default_factory=count)

    @property
    def living(self) -> list[Known]:
        """The modes that are declared now."""
        return [mode for mode in dict.fromkeys(self.known.values()) if not mode.is_deleted]

    def place(self, memory_id: str) -> Known | None:
        """The mode that a memory must be in; None where it must be forgotten."""
        mode = self.known.get(self.kept[memory_id])
        return mode and mode.today

    def shown(self) -> Json:
        """What `list_modes` must say."""
        modes = sorted((mode.name, mode.embedder) for mode in self.living)
        return {"modes": modes, "user_default": None if self.default is None else self.default.name}

    def declare(self) -> Order:
        """Declare a mode, at times as the default."""
        mode, is_default = Known(self._name(), self.chance.choice([*DIMS])), self.chance.random() < 0.5

        def holds() -> None:
            self.known[mode.name] = mode
            self.default = mode if is_default else self.default

        arguments = {"name": mode.name, "embedder": mode.embedder, "is_default": is_default}
        return Order("declare_mode", arguments, holds)

    def rename(self) -> Order:
        """Give a mode another name."""
        mode, name = self._own(), self._name()

        def holds() -> None:
            self.known[name] = mode
            mode.name = name

        return Order("rename_mode", {"name": mode.name, "new_name": name}, holds)

    def embed_anew(self) -> Order:
        """Give a mode the other embedder."""
        mode = self._own()
        embedder = self.chance.choice([one for one in DIMS if one != mode.embedder])

        def holds() -> None:
            mode.embedder = embedder

        return Order("declare_mode", {"name": mode.name, "embedder": embedder}, holds)

    def delete_and_forget(self) -> Order:
        """Delete a mode with its memories."""
        return self._delete(self._own(), None)

    def delete_and_move(self) -> Order:
        """Delete a mode, and leave its memories to another one."""
        mode = self._own()
        return self._delete(mode, self.chance.choice([one for one in self.living if one is not mode]))

    def correct(self) -> Order:
        """Put a memory into another mode."""
        memory_id = self.chance.choice([one for one in self.kept if self.place(one)])
        mode = self.chance.choice([one for one in self.living if one is not self.place(memory_id)])

        def holds() -> None:
            self.kept[memory_id] = mode.name

        return Order("set_memory_mode", {"memory_id": memory_id, "mode": mode.name}, holds)

    def _delete(self, mode: Known, heir: Known | None) -> Order:
        def holds() -> None:
            mode.is_deleted, mode.heir = True, heir
            self.default = None if self.default is mode else self.default

        memories = "forget" if heir is None else f"move:{heir.name}"
        return Order("delete_mode", {"name": mode.name, "memories": memories}, holds)

    def _own(self) -> Known:
        """Any mode but `general`."""
        return self.chance.choice([mode for mode in self.living if mode.name != GENERAL])

    def _name(self) -> str:
        return f"mode{next(self._numbers)}"
