"""What a page is about: the caller, and the user, project and mode that the address names.

Enters: a request. Guaranteed: the user is one that the caller may read; the same three names mean the same on every
page, and every address that a page links to keeps them.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request

from gateway.http.problems import request_id_of
from gateway.service.access import PROJECT, may_in_project, require_user
from gateway.service.calls import Call, Caller
from gateway.service.failures import Refused
from gateway.service.service import MemoryService
from gateway.service.wire import Json
from schemas.scopes import ANY_VALUE

PAGES = "/admin"
"""The beginning of every page's path."""

KEPT = ("user", "project", "mode")
"""Parameters that every link keeps."""

OF_ONE_VISIT = ("notice", "count", "name")
"""Parameters that tell what an action did; no link repeats them."""

OF_ONE_LIST = ("cursor", "trail", "at", "of")
"""Parameters that are a place in a list; where something else is picked, the list begins anew."""

EVERYONE = "everyone"
"""Parameter of a page about all users, where one alone would be chosen. Kept by links until a user is chosen."""


@dataclass(frozen=True)
class View:
    """One request for a page. `project` and `mode` are None for all; `user` is None where none was chosen.

    `projects` are the user's, where the page had to ask for them: None until then.
    """

    caller: Caller
    user: str | None
    project: str | None
    mode: str | None
    path: str
    query: dict[str, str]
    request_id: str
    scope_fields: frozenset[str]
    projects: frozenset[str] | None = None

    def call(self, wait_s: float = 10.0) -> Call:
        """Return a call about the chosen user. Raises Refused where none was chosen."""
        if self.user is None:
            raise Refused("invalid_value", "choose a user first", "user")
        return Call.within(self.caller, self.user, wait_s, self.request_id)

    @property
    def selector(self) -> Json:
        """The scope of reads: the chosen project, or all."""
        return {**dict.fromkeys(self.scope_fields, ANY_VALUE), PROJECT: self.project or ANY_VALUE}

    @property
    def place(self) -> Json:
        """The scope of writes: the chosen project, or the default one."""
        return {} if self.project is None else {PROJECT: self.project}

    @property
    def narrowed(self) -> dict[str, str]:
        """The parameters that stay where another project or mode is picked."""
        passing = {*KEPT, *OF_ONE_VISIT, *OF_ONE_LIST}
        return {name: value for name, value in self.query.items() if name not in passing}

    @property
    def may_forget(self) -> bool:
        """True if the caller may forget the chosen project, or the user with all projects, also later ones."""
        return self.user is not None and may_in_project(self.caller, self.user, self.project, "manage")

    def address(self, page: str = "", *parts: str, **changes: Any) -> str:
        """Return the address of a page, with what is chosen; a change of None leaves a parameter out.

        `parts` follow the page's path, encoded, such as the id of a memory.
        """
        path = "/".join([PAGES, *([page] if page else []), *(quote(part, safe="") for part in parts)])
        kept = {name: getattr(self, name) for name in KEPT} | changes
        if kept["user"] is None and self.query.get(EVERYONE):
            kept = {EVERYONE: "1"} | kept
        named = [(name, value) for name, value in kept.items() if value is not None]
        return path + ("?" + urlencode(named, doseq=True) if named else "")

    def again(self, **changes: Any) -> str:
        """Return this page's address with other parameters; a change of None leaves one out."""
        merged = {name: value for name, value in self.query.items() if name not in OF_ONE_VISIT} | changes
        named = [(name, value) for name, value in merged.items() if value is not None]
        return self.path + ("?" + urlencode(named, doseq=True) if named else "")


def view_of(request: Request, service: MemoryService, scope_fields: frozenset[str]) -> View:
    """Return the view of a request. Raises Refused: `unauthenticated`, or `not_allowed` for a foreign user."""
    caller = request.scope.get("caller")
    if not isinstance(caller, Caller):
        refused = request.scope.get("refused")
        raise refused if isinstance(refused, Refused) else Refused("unauthenticated", "sign in with a key")
    query = dict(request.query_params)
    user = query.get("user") or caller.own_user or _only_user(service, caller, query)
    if user is not None:
        require_user(caller, user, "read")
    return View(
        caller,
        user,
        _chosen(query.get("project")),
        _chosen(query.get("mode")),
        request.scope["path"],
        query,
        request_id_of(request),
        scope_fields,
    )


def _chosen(named: str | None) -> str | None:
    """Return what a parameter names; None where it names all, or nothing."""
    return None if named in (None, "", ANY_VALUE) else named


def _only_user(service: MemoryService, caller: Caller, query: dict[str, str]) -> str | None:
    """Return the user of a deployment that has one; None where there is a choice, and where all users are asked for."""
    return None if query.get(EVERYONE) else service.users.only_user(caller)
