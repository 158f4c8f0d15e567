"""`python -m bench.visibility`: a table of which memories each query may see, and which it does see.

Two modes with embedders of different dimensions, three users and two projects: one memory for each user, project and
mode, and a question for each user with every choice of projects and modes. What a query may see is worked out here,
from the contract alone. Exit code 1 when anything differs, or when a user can read another's memory by its id.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from bench.system import running
from streams.client import Answer, MemoryClient, MemoryServiceError
from tests.builders.tiny_models import write_tiny_model

DIMS = {"tiny32": 32, "tiny48": 48}
"""Embedders with their dimensions."""

PROJECTS, MODES = ("p1", "p2"), ("code", "journal")
WORDS = "lantern shelf"
"""Every memory has them, so that only scope and mode decide what is found."""

ALL_PROJECTS: tuple[str | list[str], ...] = ("p1", "p2", ["p1", "p2"], "*")
ALL_MODES: tuple[str | list[str] | None, ...] = ("code", "journal", ["code", "journal"], "*", None)

LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class User:
    """Who asks: the embedders of his modes, and his defaults."""

    user_id: str
    embedders: dict[str, str]
    default: str | None = None
    project_defaults: dict[str, str] = field(default_factory=dict)

    def mode_in(self, projects: str | list[str]) -> str:
        """The mode that a question without one is asked in (CONTRACT §5)."""
        named = self.project_defaults.get(projects) if isinstance(projects, str) else None
        return named or self.default or "general"


USERS = (
    User("ana", {"code": "tiny32", "journal": "tiny48"}, "journal", {"p1": "code"}),
    User("ben", {"code": "tiny48", "journal": "tiny32"}),
    User("cid", {"code": "tiny32", "journal": "tiny48"}, "code", {"p2": "journal"}),
)
"""The second has the embedders the other way round and no default; first and third share collections."""


@dataclass(frozen=True, order=True)
class Told:
    """One memory."""

    user_id: str
    project: str
    mode: str

    @property
    def text(self) -> str:
        """What it says."""
        return f"The lantern of {self.user_id} in {self.project} is on the {self.mode} shelf."

    def __str__(self) -> str:
        return f"{self.user_id} {self.project} {self.mode}"


@dataclass(frozen=True)
class Question:
    """What is asked, and by whom."""

    user: User
    projects: str | list[str]
    mode: str | list[str] | None

    def may_see(self) -> set[Told]:
        """What the contract lets it see."""
        projects = PROJECTS if self.projects == "*" else _listed(self.projects)
        asked = self.user.mode_in(self.projects) if self.mode is None else self.mode
        modes = MODES if asked == "*" else _listed(asked)
        told = (Told(self.user.user_id, project, mode) for project, mode in product(projects, modes))
        return {one for one in told if one.mode in MODES}


class Visibility:
    """Tells all memories, asks all questions."""

    def __init__(self, client: MemoryClient) -> None:
        self._client = client
        self._told: dict[str, Told] = {}
        self.differs = 0

    async def prepare(self) -> None:
        """Declare the modes and tell the memories; returns when all have their vectors."""
        for user in USERS:
            await self._declare(user)
            for project, mode in product(PROJECTS, MODES):
                told = Told(user.user_id, project, mode)
                accepted = await self._client.remember(
                    told.text, turn_id=str(told), mode=mode, user_id=user.user_id, project_id=project
                )
                self._told[accepted.memory_id or ""] = told
        for user in USERS:
            while not await self._is_ready(user):  # noqa: ASYNC110 - only asking tells
                await asyncio.sleep(LOOK_EVERY_S)

    async def _declare(self, user: User) -> None:
        for name, embedder in user.embedders.items():
            await self._command(user, "declare_mode", name=name, embedder=embedder, is_default=name == user.default)
        for project, name in user.project_defaults.items():
            arguments = {"name": name, "for_project": True}
            await self._client.command("set_default_mode", arguments, user_id=user.user_id, project_id=project)

    async def _is_ready(self, user: User) -> bool:
        modes = (await self._command(user, "health"))["modes"].values()
        return all(mode["ready"] == mode["eligible"] for mode in modes)

    async def _command(self, user: User, name: str, /, **arguments: object) -> dict[str, dict[str, dict[str, int]]]:
        return await self._client.command(name, arguments, user_id=user.user_id)

    async def rows(self) -> list[str]:
        """The table, in markdown."""
        rows = ["| user | projects | mode | searched | strategy | may see | sees | |", "|" + " --- |" * 8]
        for user, projects, mode in product(USERS, ALL_PROJECTS, ALL_MODES):
            rows.append(await self._row(Question(user, projects, mode)))
        return rows

    async def _row(self, asked: Question) -> str:
        answer = await self._client.retrieve(
            WORDS, users=asked.user.user_id, projects=asked.projects, mode=asked.mode, top_k=100
        )
        sees, may = self._seen(answer), asked.may_see()
        is_right = sorted(sees) == sorted(may)
        self.differs += not is_right
        cells = [
            *(asked.user.user_id, _shown(asked.projects), _shown(asked.mode), ", ".join(answer.modes)),
            *(answer.strategy, _names(may), _names(sees), "" if is_right else "**DIFFERS**"),
        ]
        return f"| {' | '.join(cells)} |"

    def _seen(self, answer: Answer) -> list[Told]:
        """Every hit, and that it is what it says."""
        seen = [self._told[hit.memory_id] for hit in answer.hits]
        for told, hit in zip(seen, answer.hits, strict=True):
            self.differs += (told.text, told.mode, told.project) != (hit.text, hit.mode, hit.scope["project_id"])
        return seen

    async def strangers(self) -> str:
        """Every user asks for every memory of the others by its id."""
        asked = [(user, one) for user in USERS for one, told in self._told.items() if told.user_id != user.user_id]
        refused = [await self._is_refused(user, memory_id) for user, memory_id in asked]
        self.differs += refused.count(False)
        return f"{len(asked)} `get_memory` for another user's memory: {sum(refused)} `not_found`"

    async def _is_refused(self, user: User, memory_id: str) -> bool:
        arguments = {"memory_id": memory_id}
        project = self._told[memory_id].project
        try:
            await self._client.command("get_memory", arguments, user_id=user.user_id, project_id=project)
        except MemoryServiceError as error:
            return error.code == "not_found"
        return False


def main() -> None:
    """Print the table, and fail where it is not as it must be."""
    with tempfile.TemporaryDirectory(prefix="modestream-visibility-") as directory:
        differs = asyncio.run(_shown_table(Path(directory)))
    print(f"\n{differs} differences" if differs else "\nevery query sees exactly what it may see")
    sys.exit(1 if differs else 0)


async def _shown_table(directory: Path) -> int:
    configured = {
        name: {"path": str(write_tiny_model(directory / name, dim)), "dim": dim} for name, dim in DIMS.items()
    }
    settings = {"MODESTREAM_EMBEDDERS": json.dumps(configured)}
    async with running(directory / "data", settings) as system, MemoryClient(system.bootstrap, timeout=60) as client:
        visibility = Visibility(client)
        await visibility.prepare()
        print(*_legend(), *await visibility.rows(), "", await visibility.strangers(), sep="\n")
        return visibility.differs


def _legend() -> Iterator[str]:
    for user in USERS:
        modes = ", ".join(f"{mode} by {name} ({DIMS[name]} numbers)" for mode, name in user.embedders.items())
        projects = ", ".join(f"{mode} in {project}" for project, mode in user.project_defaults.items())
        yield f"- {user.user_id}: {modes}; default: {user.default or 'none'}; by project: {projects or 'none'}"
    yield ""


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _shown(value: str | list[str] | None) -> str:
    return "none" if value is None else " + ".join(_listed(value)).replace("*", "`*`")


def _names(told: set[Told] | list[Told]) -> str:
    return ", ".join(map(str, sorted(told))) or "nothing"


if __name__ == "__main__":
    main()
