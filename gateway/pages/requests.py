"""A request for a page: its view (caller, user, project, mode), its form, names in its path, filters of its list.

Guaranteed: the user of a view is one that the caller may read; user, project and mode mean the same on every page, and
every address that a page links to keeps them.

A notice about an action is kept in this process, under a token in a cookie, and shown once: no link can show it, and a
reload does not repeat it. With several gateways behind one address, a notice is lost where another one answers; the
action is not.
"""

import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlencode
from zlib import crc32

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gateway.http.calls import decoded
from gateway.http.problems import request_id_of
from gateway.service.access import PROJECT, may, may_everywhere, may_in_project, require_user
from gateway.service.calls import Call, Caller, Json, Refused
from gateway.service.service import MemoryService
from schemas.scopes import ANY_VALUE
from schemas.state.policies import Permission

COOKIE = "ms-notice"

MAX_KEPT = 500
"""Notices in memory, the newest."""

MAX_AGE_S = 900.0
"""Time to live of a notice, and of the undo that it offers."""

Undo = Callable[[Any], Awaitable[Response]]
"""Undoes an action; takes the view of the request that asks for it."""


@dataclass(frozen=True)
class RefusedForm:
    """A form that was refused: where it was sent, its fields, and why."""

    action: str
    fields: Mapping[str, Sequence[str]]
    refused: Refused


@dataclass(frozen=True)
class Flash:
    """A notice. `undo` takes the action back; `form` is the refused form; `secret` is shown only once."""

    notice: str | None = None
    undo: Undo | None = None
    form: RefusedForm | None = None
    secret: str | None = None
    token: str = ""


class Flashes:
    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[float, Flash]] = OrderedDict()

    def keep(self, answer: Response, flash: Flash) -> Response:
        """Keep a notice for the page that an answer leads to."""
        token = secrets.token_urlsafe(16)
        self._kept[token] = (time.monotonic() + MAX_AGE_S, flash)
        while len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        answer.set_cookie(COOKIE, token, max_age=60, httponly=True, samesite="strict", path="/admin")
        return answer

    def find(self, token: str) -> Flash | None:
        """Return a notice that has not expired."""
        until, flash = self._kept.get(token, (0.0, None))
        return flash if until > time.monotonic() else None

    def drop(self, token: str) -> None:
        self._kept.pop(token, None)


PAGES = "/admin"

KEPT_PARAMETERS = ("user", "project", "mode")
"""Parameters that every link keeps."""

OF_ONE_LIST = ("cursor", "trail", "at", "of")
"""Parameters of a position in a list; picking another project or mode drops them."""

EVERYONE = "everyone"
"""Parameter of a page about all users, in a deployment whose only user would be chosen. Links keep it until a user is
chosen."""

FORM_TYPE = "application/x-www-form-urlencoded"

HUES = 12
"""Colours that modes are told apart by; `app.css` has one class each, with contrast in light and dark."""

MAX_FIELDS = 1_000
"""Fields of a form: a page of selected memories has the most."""


@dataclass(frozen=True)
class View:
    """A request for a page. `project` and `mode` are None for all; `user` is None if none was chosen.

    `projects` are the user's, if the page has already loaded them.
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
    hues: dict[str, int] = field(default_factory=dict)
    """Colours of the user's modes by their place: the page that lists them fills it."""
    flash: Flash | None = None
    """The notice of the action before this page."""

    def call(self, wait_s: float = 10.0) -> Call:
        """Return a call about the chosen user. Raises Refused if none was chosen."""
        if self.user is None:
            raise Refused("invalid_value", "choose a user first", "user")
        return Call.within(self.caller, self.user, wait_s, self.request_id)

    @property
    def read_scope(self) -> Json:
        """The scope of reads: the chosen project, or all."""
        return {**dict.fromkeys(self.scope_fields, ANY_VALUE), PROJECT: self.project or ANY_VALUE}

    @property
    def write_scope(self) -> Json:
        """The scope of writes: the chosen project, or the default one."""
        return {} if self.project is None else {PROJECT: self.project}

    @property
    def narrowed(self) -> dict[str, str]:
        """The parameters that stay when another project or mode is picked."""
        dropped = {*KEPT_PARAMETERS, *OF_ONE_LIST}
        return {name: value for name, value in self.query.items() if name not in dropped}

    @property
    def may_forget(self) -> bool:
        """True if the caller may forget the chosen project, or the user with all projects, future ones included."""
        return self.user is not None and may_in_project(self.caller, self.user, self.project, "manage")

    def may(self, permission: Permission) -> bool:
        """True if the caller may do this in the scope of writes, or `operate` the deployment: templates ask it."""
        if permission == "operate":
            return may_everywhere(self.caller, permission)
        return self.user is not None and may(self.caller, self.user, self.write_scope, permission)

    @property
    def rights(self) -> str:
        """The caller's permissions, in words."""
        if self.user is None or self.may("manage"):
            return "" if self.caller.grants is None or self.user is None else "may change"
        return "may add" if self.may("write") else "read-only"

    def hue(self, mode: str | None) -> str:
        """Return the class of a mode's colour: in the order in which modes were declared, the same on every page."""
        name = mode or ""
        return f"hue-{self.hues.get(name, crc32(name.encode())) % HUES}"

    def address(self, page: str = "", /, *parts: str, **changes: Any) -> str:
        """Return the address of a page, with the current choices; a change of None removes a parameter.

        `parts` follow the page's path, encoded, such as the id of a memory.
        """
        path = "/".join([PAGES, *([page] if page else []), *(quote(part, safe="") for part in parts)])
        parameters = {name: getattr(self, name) for name in KEPT_PARAMETERS} | changes
        if parameters["user"] is None and self.query.get(EVERYONE):
            parameters = {EVERYONE: "1"} | parameters
        return _address(path, parameters)

    def again(self, **changes: Any) -> str:
        """Return this page's address with other parameters; a change of None leaves one out."""
        return _address(self.path, self.query | changes)


def view_of(request: Request, service: MemoryService, scope_fields: frozenset[str]) -> View:
    """Return the view of a request. Raises Refused: `unauthenticated`, or `not_allowed` for a foreign user."""
    caller = request.scope.get("caller")
    if not isinstance(caller, Caller):
        refused = request.scope.get("refused")
        raise refused if isinstance(refused, Refused) else Refused("unauthenticated", "sign in with a key")
    query = dict(request.query_params)
    user = query.get("user") or caller.own_user or (None if query.get(EVERYONE) else service.users.only_user(caller))
    if user is not None:
        require_user(caller, user, "read")
    return View(
        caller=caller,
        user=user,
        project=_chosen(query.get("project")),
        mode=_chosen(query.get("mode")),
        path=request.scope["path"],
        query=query,
        request_id=request_id_of(request),
        scope_fields=scope_fields,
    )


class Form:
    """The fields of a form; a field may have several values."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        self.fields = fields

    def text(self, name: str) -> str:
        """Return a required field. Raises Refused, `invalid_value`."""
        value = self.optional(name)
        if value is None:
            raise Refused("invalid_value", f"{name.replace('_', ' ')} is empty", name)
        return value

    def optional(self, name: str) -> str | None:
        """Return a field; None if it is empty."""
        return (self.fields.get(name) or [""])[-1].strip() or None

    def all(self, name: str) -> list[str]:
        return self.fields.get(name, [])

    def is_set(self, name: str) -> bool:
        return self.optional(name) is not None


async def read_form(request: Request) -> Form:
    """Read the form of a request. Raises Refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != FORM_TYPE:
        raise Refused("invalid_value", "send this as a form")
    try:
        body = (await request.body()).decode()
        return Form(parse_qs(body, max_num_fields=MAX_FIELDS, errors="strict"))
    except ValueError:
        raise Refused("invalid_value", "the form can't be read; load the page again and send it again") from None


def base_of(request: Request) -> str:
    """Return the gateway's address as the browser knows it, for commands to copy."""
    scheme = request.headers.get("x-forwarded-proto", request.url.scheme).partition(",")[0].strip()
    return f"{scheme}://{request.url.netloc}"


def name_of(request: Request, parameter: str) -> str:
    """Return a name of the path. Raises HTTPException, 404, for one that is not UTF-8."""
    try:
        return decoded(request.path_params[parameter])
    except ValueError:
        raise HTTPException(404) from None


def _chosen(value: str | None) -> str | None:
    """Return the value of a picker; None for all."""
    return None if value in (None, "", ANY_VALUE) else value


def _address(path: str, parameters: Mapping[str, Any]) -> str:
    named = [(name, value) for name, value in parameters.items() if value is not None]
    return path + ("?" + urlencode(named, doseq=True) if named else "")


EXTRACTED = "items"
"""The choice of all `EXTRACTED_TYPES`."""

EXTRACTED_TYPES = ("semantic", "procedural", "document", "state_object")

UNCHANGED = ("role", "conversation_id", "embedding_status", "order", "cursor")
"""Parameters that are fields of the same name and value."""

TEXT = "text"
"""The parameter for `contains`: a field of that name would hide the method of its form from scripts."""

DEFAULT_LIMIT = 50

LIMITS = (25, 50, 100, 200, 500)
"""Choices of rows of a page; 500 is the contract's limit, and that of a selection."""

MAX_TRAIL = 12
"""Pages that an address leads back over: a cursor has some 260 characters."""

FIRST = "0"
"""Stands in a trail for the first page, which has no cursor."""


def list_fields(query: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a query. Days are of UTC, the last one included. Raises Refused."""
    fields: dict[str, Any] = {name: query[name] for name in UNCHANGED if query.get(name)}
    if text := query.get(TEXT):
        fields["contains"] = text
    if types := query.get("types"):
        fields["types"] = list(EXTRACTED_TYPES) if types == EXTRACTED else [types]
    if since := query.get("since"):
        fields["since"] = _beginning_of(since, 0)
    if until := query.get("until"):
        fields["until"] = _beginning_of(until, 1)
    if query.get("include_superseded"):
        fields["include_superseded"] = True
    filters: dict[str, Any] = {"speaker": speaker} if (speaker := query.get("speaker")) else {}
    if metadata := query.get("metadata"):
        name, is_given, value = metadata.partition("=")
        if not is_given:
            raise Refused("invalid_value", "metadata is NAME=VALUE", "metadata")
        # A form has texts alone: `7` is the number, too.
        values: list[object] = [value.strip()]
        with suppress(ValueError):
            values += [scalar for scalar in [json.loads(value)] if isinstance(scalar, bool | int | float)]
        filters["metadata"] = {name.strip(): values}
    if filters:
        fields["filters"] = filters
    return {**fields, "limit": _limit(query.get("limit"))}


def is_filtered(query: Mapping[str, str]) -> bool:
    """True if a query has a filter besides the pickers of the head."""
    names = ("role", "conversation_id", "embedding_status", TEXT, "types", "since", "until", "speaker", "metadata")
    return any(query.get(name) for name in names)


class Pager(NamedTuple):
    """Changes of the address for each link; None if there is no such page."""

    first: dict[str, Any] | None
    previous: dict[str, Any] | None
    next: dict[str, Any] | None


def pager_of(query: Mapping[str, str], next_cursor: str | None) -> Pager:
    """Return the links of a page from its query and the cursor of the next page.

    Lists answer with the next page's cursor only, so the address carries the cursors of the pages before.
    """
    cursor = query.get("cursor") or None
    trail = [previous for previous in query.get("trail", "").split(".") if previous]
    longer = [*trail, cursor or FIRST][-MAX_TRAIL:]
    return Pager(
        None if cursor is None else _change(None, []),
        _change(trail[-1], trail[:-1]) if cursor is not None and trail else None,
        None if next_cursor is None else _change(next_cursor, longer),
    )


def _beginning_of(text: str, days_later: int) -> str:
    """Return the beginning of a day as a time; other texts stay as they are, such as a time in another page's link."""
    try:
        day = date.fromisoformat(text) + timedelta(days=days_later)
    except (ValueError, OverflowError):
        return text
    return f"{day.isoformat()}T00:00:00Z"


def _limit(text: str | None) -> int:
    if not text:
        return DEFAULT_LIMIT
    if not text.isdecimal() or not 1 <= int(text[:4]) <= LIMITS[-1]:
        raise Refused("invalid_value", f"a page has 1 to {LIMITS[-1]} rows", "limit")
    return int(text)


def _change(cursor: str | None, trail: list[str]) -> dict[str, Any]:
    return {"cursor": None if cursor == FIRST else cursor, "trail": ".".join(trail) or None}
