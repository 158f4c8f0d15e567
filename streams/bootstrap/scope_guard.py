"""Guard a data directory against another scope model than the one it was created with.

Stored records name the fields of their scopes: with other fields no user would find them, or the wrong user would.
"""

import hashlib
import json
import sys
from pathlib import Path

from schemas.scopes import Scope
from streams.adapters.durable_files import write_durably

SCOPE_FILE = "scope.json"
"""The file with the fields, in the data directory."""

LEXICAL_INDEX_DIR = "words"
"""Exists after the first start of a worker; early versions wrote no scope file and had the built-in scope."""


def check_scope_fields(directory: Path, scope: type[Scope]) -> None:
    """End the process if a data directory was created with scopes of other fields."""
    known = _stored_fields(directory)
    if known is not None and known != sorted(scope.model_fields):
        ours = ", ".join(sorted(scope.model_fields))
        sys.exit(
            f"setting MODESTREAM_SCOPE_MODEL: {directory} was created with scopes of {', '.join(known)}, not {ours}. "
            "Set the former model, or set a new DATA_DIR and TOPIC_PREFIX and publish the turns again with new scopes"
        )


def save_scope_fields(directory: Path, scope: type[Scope]) -> None:
    """Check the fields as `check_scope_fields` does, and store them for later starts."""
    check_scope_fields(directory, scope)
    names = sorted(scope.model_fields)
    content = {"scope_fields": names, "scope_schema_hash": hashlib.sha256(json.dumps(names).encode()).hexdigest()}
    write_durably(directory / SCOPE_FILE, json.dumps(content, indent=2) + "\n")


def _stored_fields(directory: Path) -> list[str] | None:
    file = directory / SCOPE_FILE
    if file.exists():
        return list(json.loads(file.read_text())["scope_fields"])
    return sorted(Scope.model_fields) if (directory / LEXICAL_INDEX_DIR).exists() else None
