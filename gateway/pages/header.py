"""The head of every page: where one is, and the pickers of user, project and mode."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from modestream_client.operations import LIST_PROJECTS

from gateway.pages.notices import notice_of
from gateway.pages.view import View
from gateway.service.access import PROJECT
from gateway.service.calls import Call
from gateway.service.failures import Refused
from gateway.service.service import MemoryService
from gateway.service.wire import Json
from schemas.scopes import ANY_VALUE

MAX_PROJECTS = 200
"""Projects in the picker; a longer list is one for a search."""


PROJECTS_S = 3.0
"""Limit of the question for the picker's projects: a page waits for it."""


@dataclass(frozen=True)
class Link:
    """An entry of the navigation."""

    page: str
    title: str
    is_of_user: bool = True


LINKS = (
    Link("", "Overview", is_of_user=False),
    Link("memories", "Memories"),
    Link("conversations", "Conversations"),
    Link("ask", "Ask"),
    Link("map", "Map"),
    Link("modes", "Modes"),
    Link("categories", "Categories"),
    Link("intention", "Intention"),
    Link("consolidations", "Consolidations"),
    Link("runs", "Runs"),
    Link("dead-letters", "Dead letters", is_of_user=False),
)


@dataclass(frozen=True)
class Header:
    """What the head shows. `modes` has the number of memories by mode, most first."""

    title: str
    active: str
    projects: tuple[str, ...] = ()
    modes: tuple[tuple[str, int], ...] = ()
    links: tuple[Link, ...] = LINKS
    notice: str | None = None


async def header_of(service: MemoryService, view: View, title: str, active: str) -> Header:
    """Load what the pickers offer. Raises Refused."""
    notice = notice_of(view.query)
    if view.user is None:
        return Header(title, active, notice=notice)
    projects = await _projects(service, view) if view.projects is None else view.projects
    boundary = await boundary_of(service, view)
    modes = {name: int(mode["memories"]) for name, mode in (boundary or {}).get("modes", {}).items()}
    return Header(
        title,
        active,
        tuple(sorted(projects | ({view.project} if view.project else set()))),
        tuple(sorted({**({view.mode: 0} if view.mode else {}), **modes}.items(), key=lambda one: (-one[1], one[0]))),
        notice=notice,
    )


async def projects_of(service: MemoryService, view: View, call: Call) -> frozenset[str]:
    """Return the projects of a user, whichever is chosen. Raises Refused."""
    scope = {**view.selector, PROJECT: ANY_VALUE}
    listed = await service.operations.run(LIST_PROJECTS, call, scope, {"limit": MAX_PROJECTS})
    return frozenset(str(one["scope"][PROJECT]) for one in listed["items"])


async def boundary_of(service: MemoryService, view: View) -> Json | None:
    """Return the numbers of the chosen user; none where they have to be asked for while the worker is away."""
    with worker_may_be_away():
        return await service.users.boundary(view.call(PROJECTS_S))
    return None


async def _projects(service: MemoryService, view: View) -> frozenset[str]:
    with worker_may_be_away():
        return await projects_of(service, view, view.call(PROJECTS_S))
    return frozenset()


@contextmanager
def worker_may_be_away() -> Iterator[None]:
    """Pass over a worker that does not answer: what the gateway knows is shown all the same."""
    try:
        yield
    except Refused as refused:
        if refused.code not in ("unavailable", "timeout"):
            raise
