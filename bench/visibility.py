"""`python -m bench.visibility`: print which memories each query may see, and which it does see.

One memory for each of three users, two projects and two modes with embedders of different dimensions; a question for
each user with every choice of projects and modes. The expected results are computed here, from `docs/contract.md`
alone. Exit code 1 if any result differs, or if a user can read another user's memory by its id.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from modestream_client import Answer, MemoryClient, MemoryServiceError

from bench.harness.system import running
from tests.builders.tiny_models import write_tiny_model

DIMS = {"tiny32": 32, "tiny48": 48}
"""Embedders with their dimensions."""

PROJECTS, MODES = ("p1", "p2"), ("code", "journal")
WORDS = "lantern shelf"
"""Words of every memory, so that only scope and mode decide what is found."""

ALL_PROJECTS: tuple[str | list[str], ...] = ("p1", "p2", ["p1", "p2"], "*")
ALL_MODES: tuple[str | list[str] | None, ...] = ("code", "journal", ["code", "journal"], "*", None)

POLL_INTERVAL_S = 0.1


@dataclass(frozen=True)
class User:
    """A user with the embedders of the declared modes, and the default modes."""

    user_id: str
    embedders: dict[str, str]
    default: str | None = None
    project_defaults: dict[str, str] = field(default_factory=dict)

    def mode_in(self, projects: str | list[str]) -> str:
        """Return the mode of a question without one (`docs/contract.md`)."""
        named = self.project_defaults.get(projects) if isinstance(projects, str) else None
        return named or self.default or "general"


USERS = (
    User("ana", {"code": "tiny32", "journal": "tiny48"}, "journal", {"p1": "code"}),
    User("ben", {"code": "tiny48", "journal": "tiny32"}),
    User("cid", {"code": "tiny32", "journal": "tiny48"}, "code", {"p2": "journal"}),
)
"""The second has the embedders swapped and no default; the first and third share collections."""


@dataclass(frozen=True, order=True)
class Stored:
    """One stored memory."""

    user_id: str
    project: str
    mode: str

    @property
    def text(self) -> str:
        """The text of the memory."""
        return f"The lantern of {self.user_id} in {self.project} is on the {self.mode} shelf."

    def __str__(self) -> str:
        return f"{self.user_id} {self.project} {self.mode}"


@dataclass(frozen=True)
class Question:
    """A question of a user."""

    user: User
    projects: str | list[str]
    mode: str | list[str] | None

    def may_see(self) -> set[Stored]:
        """Return the memories that the contract allows."""
        projects = PROJECTS if self.projects == "*" else _listed(self.projects)
        mode = self.user.mode_in(self.projects) if self.mode is None else self.mode
        modes = MODES if mode == "*" else _listed(mode)
        stored = (Stored(self.user.user_id, project, mode) for project, mode in product(projects, modes))
        return {one for one in stored if one.mode in MODES}


class Visibility:
    """Stores all memories, asks all questions."""

    def __init__(self, client: MemoryClient) -> None:
        self._client = client
        self._stored: dict[str, Stored] = {}
        self.differs = 0

    async def prepare(self) -> None:
        """Declare the modes, store the memories, and wait until all are embedded."""
        for user in USERS:
            await self._declare(user)
            for project, mode in product(PROJECTS, MODES):
                stored = Stored(user.user_id, project, mode)
                accepted = await self._client.remember(
                    stored.text, turn_id=str(stored), mode=mode, user_id=user.user_id, project_id=project
                )
                self._stored[accepted.memory_id or ""] = stored
        for user in USERS:
            while not await self._is_ready(user):  # noqa: ASYNC110 - there is no event to await
                await asyncio.sleep(POLL_INTERVAL_S)

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
        """Return the rows of the Markdown table."""
        rows = ["| user | projects | mode | searched | strategy | may see | sees | |", "|" + " --- |" * 8]
        for user, projects, mode in product(USERS, ALL_PROJECTS, ALL_MODES):
            rows.append(await self._row(Question(user, projects, mode)))
        return rows

    async def _row(self, question: Question) -> str:
        answer = await self._client.retrieve(
            WORDS, users=question.user.user_id, projects=question.projects, mode=question.mode, top_k=100
        )
        seen, may = self._found(answer), question.may_see()
        is_right = sorted(seen) == sorted(may)
        self.differs += not is_right
        cells = [
            *(question.user.user_id, _format(question.projects), _format(question.mode), ", ".join(answer.modes)),
            *(answer.strategy, _names(may), _names(seen), "" if is_right else "**DIFFERS**"),
        ]
        return f"| {' | '.join(cells)} |"

    def _found(self, answer: Answer) -> list[Stored]:
        """Return the memories of all hits; count hits with wrong fields as differences."""
        seen = [self._stored[hit.memory_id] for hit in answer.hits]
        for stored, hit in zip(seen, answer.hits, strict=True):
            self.differs += (stored.text, stored.mode, stored.project) != (hit.text, hit.mode, hit.scope["project_id"])
        return seen

    async def foreign_reads(self) -> str:
        """Read every memory by its id as every other user; return a summary."""
        reads = [
            (user, one) for user in USERS for one, memory in self._stored.items() if memory.user_id != user.user_id
        ]
        refused = [await self._is_refused(user, memory_id) for user, memory_id in reads]
        self.differs += refused.count(False)
        return f"{len(reads)} `get_memory` for another user's memory: {sum(refused)} `not_found`"

    async def _is_refused(self, user: User, memory_id: str) -> bool:
        arguments = {"memory_id": memory_id}
        project = self._stored[memory_id].project
        try:
            await self._client.command("get_memory", arguments, user_id=user.user_id, project_id=project)
        except MemoryServiceError as error:
            return error.code == "not_found"
        return False


def main() -> None:
    """Print the table; exit with 1 if anything differs."""
    with tempfile.TemporaryDirectory(prefix="modestream-visibility-") as directory:
        differs = asyncio.run(_print_table(Path(directory)))
    print(f"\n{differs} differences" if differs else "\nevery query sees exactly what it may see")
    sys.exit(1 if differs else 0)


async def _print_table(directory: Path) -> int:
    configured = {
        name: {"path": str(write_tiny_model(directory / name, dim)), "dim": dim} for name, dim in DIMS.items()
    }
    settings = {"MODESTREAM_EMBEDDERS": json.dumps(configured)}
    async with running(directory / "data", settings) as system, MemoryClient(system.bootstrap, timeout=60) as client:
        visibility = Visibility(client)
        await visibility.prepare()
        print(*_legend(), *await visibility.rows(), "", await visibility.foreign_reads(), sep="\n")
        return visibility.differs


def _legend() -> Iterator[str]:
    for user in USERS:
        modes = ", ".join(f"{mode} by {name} ({DIMS[name]} numbers)" for mode, name in user.embedders.items())
        projects = ", ".join(f"{mode} in {project}" for project, mode in user.project_defaults.items())
        yield f"- {user.user_id}: {modes}; default: {user.default or 'none'}; by project: {projects or 'none'}"
    yield ""


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _format(value: str | list[str] | None) -> str:
    return "none" if value is None else " + ".join(_listed(value)).replace("*", "`*`")


def _names(stored: set[Stored] | list[Stored]) -> str:
    return ", ".join(map(str, sorted(stored))) or "nothing"


if __name__ == "__main__":
    main()
