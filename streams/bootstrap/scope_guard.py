"""Guard a data directory against another scope model than the one it was created with.

Stored records name the fields of their scopes: with other fields no user would find them, or the wrong user would.
Kafka has the same for the whole deployment (`service_guard`); this check needs no broker.
"""

import json
import sys
from pathlib import Path

import structlog

from schemas.internal.service import scope_fields, scope_schema_hash
from schemas.scopes import Scope
from streams.adapters.durable_files import write_durably

log = structlog.get_logger()

SCOPE_FILE = "scope.json"
"""The file with the fields, in the data directory."""

LEXICAL_INDEX_DIR = "words"
"""Exists after the first start of a worker; early versions wrote no scope file and had the built-in scope."""

MIGRATE = (
    "Set the former value; or migrate to a new TOPIC_PREFIX and DATA_DIR, as docs/operations.md says under 'Changing"
    " what is fixed'"
)
"""What an operator can do about a refused setting."""


def check_scope_fields(directory: Path, scope: type[Scope]) -> None:
    """End the process if a data directory was created with scopes of other fields."""
    known, ours = _stored_fields(directory), scope_fields(scope)
    if known is not None and known != ours:
        sys.exit(
            f"setting MODESTREAM_SCOPE_MODEL: {directory} was created with scopes of {', '.join(known)}, not"
            f" {', '.join(ours)}\n{MIGRATE}"
        )


def save_scope_fields(directory: Path, scope: type[Scope]) -> None:
    """Check the fields as `check_scope_fields` does, and store them for later starts."""
    check_scope_fields(directory, scope)
    names = scope_fields(scope)
    content = {"scope_fields": names, "scope_schema_hash": scope_schema_hash(names)}
    write_durably(directory / SCOPE_FILE, json.dumps(content, indent=2) + "\n")


def _stored_fields(directory: Path) -> tuple[str, ...] | None:
    file = directory / SCOPE_FILE
    if file.exists():
        try:
            return tuple(json.loads(file.read_bytes())["scope_fields"])
        except (ValueError, KeyError, TypeError) as problem:
            # The record of the deployment in Kafka has the same: the worker compares it, and writes the file again.
            log.warning("a damaged file is made again", file=str(file), problem=repr(problem))
            return None
    return scope_fields(Scope) if (directory / LEXICAL_INDEX_DIR).exists() else None
