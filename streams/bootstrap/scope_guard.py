"""The fields of the scopes that a data directory was made with: another scope model needs another directory.

What is stored names its scope's fields; with other fields it would be found by nobody, or by the wrong ones.
"""

import hashlib
import json
import sys
from pathlib import Path

from schemas.scopes import Scope
from streams.adapters.durable_files import write_durably

SCOPE_FILE = "scope.json"
"""What the fields are noted in, in the data directory."""

LEXICAL_INDEX_DIR = "words"
"""What is there where a worker has run before; those that wrote no file had the built-in scope."""


def check_scope_fields(directory: Path, scope: type[Scope]) -> None:
    """End the process where a data directory was made with scopes of other fields."""
    known = _known(directory)
    if known is not None and known != sorted(scope.model_fields):
        ours = ", ".join(sorted(scope.model_fields))
        sys.exit(
            f"setting MODESTREAM_SCOPE_MODEL: {directory} was made with scopes of {', '.join(known)}, not of {ours}. "
            "Take the former model, or give a new DATA_DIR and TOPIC_PREFIX and publish the turns again with new scopes"
        )


def save_scope_fields(directory: Path, scope: type[Scope]) -> None:
    """The same, and note the fields for later starts."""
    check_scope_fields(directory, scope)
    names = sorted(scope.model_fields)
    told = {"scope_fields": names, "scope_schema_hash": hashlib.sha256(json.dumps(names).encode()).hexdigest()}
    write_durably(directory / SCOPE_FILE, json.dumps(told, indent=2) + "\n")


def _known(directory: Path) -> list[str] | None:
    file = directory / SCOPE_FILE
    if file.exists():
        return list(json.loads(file.read_text())["scope_fields"])
    return sorted(Scope.model_fields) if (directory / LEXICAL_INDEX_DIR).exists() else None
