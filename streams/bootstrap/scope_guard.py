"""Guard a data directory against another scope model than the one it was created with.

Stored records name the fields of their scopes: with other fields no user would find them, or the wrong user would.
Kafka has the same for the whole deployment (`deployment_records`); this check needs no broker.
"""

import os
import sys
from pathlib import Path
from typing import NamedTuple

import orjson
import structlog

from schemas.internal.service import scope_fields, scope_schema_hash
from schemas.scopes import Scope
from streams.adapters.durable_files import write_durably

log = structlog.get_logger()

SCOPE_FILE = "scope.json"
"""The file with the fields, in the data directory."""

MIGRATE = (
    "Set the former value; or migrate to a new TOPIC_PREFIX and DATA_DIR by `modestream migrate`, as"
    " docs/recovery.md says under 'Migrating'"
)
"""The operator's options for a refused setting."""


def check_scope_fields(directory: Path, scope: type[Scope]) -> None:
    """End the process if a data directory was created with scopes of other fields, or another boundary."""
    stored, ours = _stored(directory), _Fields(scope_fields(scope), scope.boundary_fields)
    if stored is None:
        return
    for what, made, own in zip(("scopes of", "the boundary"), stored, ours, strict=True):
        if made != own:
            sys.exit(
                f"setting MODESTREAM_SCOPE_MODEL: {directory} was created with {what} {', '.join(made)}, not"
                f" {', '.join(own)}\n{MIGRATE}"
            )


def save_scope_fields(directory: Path, scope: type[Scope]) -> None:
    """Check the fields as `check_scope_fields` does, and store them for later starts."""
    check_scope_fields(directory, scope)
    names = scope_fields(scope)
    content = {
        "scope_fields": names,
        "scope_schema_hash": scope_schema_hash(names),
        "boundary": [*scope.boundary_fields],
    }
    file = directory / SCOPE_FILE
    text = orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
    # Workers of one data directory start at the same time.
    if not file.exists() or file.read_bytes() != text.encode():
        write_durably(file, text, writer=f".{os.getpid()}")


class _Fields(NamedTuple):
    """The fields of scopes, and those of their boundary."""

    scope: tuple[str, ...]
    boundary: tuple[str, ...]


def _stored(directory: Path) -> _Fields | None:
    file = directory / SCOPE_FILE
    try:
        stored = orjson.loads(file.read_bytes())
        return _Fields(tuple(stored["scope_fields"]), tuple(stored["boundary"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as problem:
        # The record of the deployment in Kafka has the same: the worker compares it, and writes the file again.
        log.warning("a damaged file is made again", file=str(file), problem=repr(problem))
        return None
