"""Check a caller's grants before any write, and log deletions, exports and replays.

The service checks grants again, by the principal. A refusal reveals nothing about existing data.

Audit log: a JSON object for each such call on the logger `AUDIT`, over any transport, even if the call failed: a
timeout may still have destroyed data. Guaranteed: names, ids and counts; no text of a memory, no key.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from gateway.service.calls import Call, Caller, Refused
from schemas.scopes import ANY_VALUE
from schemas.state.policies import Permission, admits

PROJECT = "project_id"

DEFAULT_PROJECT = "default"
"""The default project of requests (docs/contract.md)."""


def require_user(caller: Caller, user_id: str, permission: Permission) -> None:
    """Raise Refused, `not_allowed`, unless the caller may do this in any project of the user."""
    if caller.own_user not in (None, user_id):
        raise _refused(permission)
    if caller.grants is not None and not _granted(caller, user_id, permission):
        raise _refused(permission)


def require_scope(caller: Caller, user_id: str, scope: dict[str, Any], permission: Permission) -> None:
    """Raise Refused, `not_allowed`, unless the grants cover one of the user's projects, or all of them for a write.

    The service narrows a read of several projects to the granted ones.
    """
    require_user(caller, user_id, permission)
    selected = scope.get(PROJECT, DEFAULT_PROJECT)
    if caller.grants is None or selected == ANY_VALUE:
        return
    values = selected if isinstance(selected, list) else [selected]
    projects = [value for value in values if isinstance(value, str)]
    grants = _granted(caller, user_id, permission)
    granted = [any(admits(grant.project_id, project) for grant in grants) for project in projects]
    if not (any(granted) if permission == "read" else all(granted)):
        raise _refused(permission)


def may(caller: Caller, user_id: str, scope: dict[str, Any], permission: Permission) -> bool:
    try:
        require_scope(caller, user_id, scope, permission)
    except Refused:
        return False
    return True


def may_see(caller: Caller, user_id: str) -> bool:
    return caller.own_user in (None, user_id) and (caller.grants is None or bool(_granted(caller, user_id, "read")))


def may_read_project(caller: Caller, user_id: str, project: str | None) -> bool:
    """True if the caller may read a project of the user; an unknown project (None) needs a grant for all."""
    return may_in_project(caller, user_id, project, "read")


def readable_project(caller: Caller, user_id: str) -> str:
    """Return a project of the user that the caller may read: the default one, if it may."""
    if may_read_project(caller, user_id, DEFAULT_PROJECT):
        return DEFAULT_PROJECT
    named = (project for grant in _granted(caller, user_id, "read") for project in grant.project_id or ())
    return next(named, DEFAULT_PROJECT)


def may_in_project(caller: Caller, user_id: str, project: str | None, permission: Permission) -> bool:
    """True if the caller may do this in a project of the user; an unknown project (None) needs a grant for all."""
    if caller.own_user not in (None, user_id):
        return False
    if caller.grants is None:
        return True
    if project is None:
        return any(grant.project_id is None for grant in _whole(caller, user_id, permission))
    return any(admits(grant.project_id, project) for grant in _whole(caller, user_id, permission))


def may_everywhere(caller: Caller, permission: Permission) -> bool:
    """True if the caller may do this in all projects of all users."""
    if caller.own_user is not None:
        return False
    if caller.grants is None:
        return permission != "operate" or caller.is_operator
    return any(permission in grant.may and grant.is_for_all for grant in caller.grants)


def require_operating(caller: Caller) -> None:
    """Raise Refused, `not_allowed`, unless the caller may change how the deployment works."""
    if not may_everywhere(caller, "operate"):
        raise _refused("operate")


def _whole(caller: Caller, user_id: str, permission: Permission) -> list[Any]:
    """Return the grants of whole projects: the service does not distinguish data within one by further fields."""
    return [grant for grant in _granted(caller, user_id, permission) if not grant.is_limited]


def _granted(caller: Caller, user_id: str, permission: Permission) -> list[Any]:
    grants = caller.grants or ()
    return [grant for grant in grants if permission in grant.may and grant.covers_user(user_id)]


def _refused(permission: Permission) -> Refused:
    return Refused("not_allowed", f"this key may not {permission} here; use a key whose grants allow it")


AUDIT = "gateway.audit"

MAX_NAME_CHARS = 256
"""Maximum characters of a name in a line; longer ones are refused as names."""

MAX_FILE_BYTES, MAX_FILES = 10_000_000, 20
"""Bytes of one file of the log, about 30,000 lines, and number of rotated files."""

log = logging.getLogger(AUDIT)


class AuditFile(RotatingFileHandler):
    """A file of the log: JSON lines with their time `at`; it rotates itself, to `NAME.1` and so on."""

    def __init__(self, path: Path) -> None:
        """Open the file and make its folder. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(path, maxBytes=MAX_FILE_BYTES, backupCount=MAX_FILES, encoding="utf-8")

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return f'{{"at":"{at}",{record.getMessage().removeprefix("{")}'


@contextmanager
def audited(call: Call, action: str, scope: Mapping[str, Any], **what: Any) -> Iterator[dict[str, int]]:
    """Log the block's action, at its end. The block puts its counts into the yielded dictionary."""
    counts: dict[str, int] = {}
    outcome = "ended"
    try:
        yield counts
        outcome = "done"
    except Refused as refused:
        outcome = refused.code
        raise
    finally:
        line = {
            "action": action,
            "outcome": outcome,
            "principal": call.caller.principal,
            "caller": call.caller.name,
            "user_id": call.user_id,
            "scope": dict(scope),
            **what,
            "counts": counts,
            "request_id": call.request_id,
        }
        log.info("%s", to_json(_shortened(line)).decode())


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shortened(field) for name, field in value.items()}
    if isinstance(value, list):
        return [_shortened(item) for item in value[:MAX_NAME_CHARS]]
    return value[:MAX_NAME_CHARS] if isinstance(value, str) else value
