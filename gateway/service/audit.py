"""Audit log: one line for each call that destroys, exports or replays data, over any transport.

Enters: the call, its action and its target. Leaves: a JSON object on the logger `AUDIT`, even if the call failed: a
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

from gateway.service.calls import Call, Refused

AUDIT = "gateway.audit"
"""Name of the logger."""

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
        """Return a line of the file."""
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
