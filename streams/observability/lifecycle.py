"""The lines that tell a process's life: its start, with what it runs, and its end.

Enters: settings, and what runs. Leaves: log lines, and the exit code. Guaranteed: no secret in a line; a run that ends,
however it ends, has a last line with its code, a kill by the system aside.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import structlog
from pydantic_settings import BaseSettings

from schemas.version import VERSION

CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")
"""User and password in an address."""

HIDDEN = "set"
"""Stands for a value that is not shown: a secret, or a structure that may have one."""

log = structlog.get_logger()


def run_logged(part: str, settings: BaseSettings, run: Callable[[], int], warnings: Iterable[str] = ()) -> int:
    """Run a part of the system, and return its exit code; `warnings` about its settings are logged first.

    Raises SystemExit with the reason where `run` refuses its settings.
    """
    log.info("starting", part=part, version=VERSION, pid=os.getpid(), settings=changed_settings(settings))
    for warning in warnings:
        log.warning(warning)
    try:
        code = run()
    except SystemExit as end:
        if isinstance(end.code, str):
            log.error("ended", part=part, code=os.EX_CONFIG, reason=end.code)  # noqa: TRY400 - it is no defect
            raise
        code = int(end.code or 0)
    except Exception:
        log.exception("ended", part=part, code=os.EX_SOFTWARE, reason="a defect")
        return os.EX_SOFTWARE
    reason = {os.EX_OK: "asked to"}.get(code, "see the lines before")
    (log.error if code else log.info)("ended", part=part, code=code, reason=reason)
    return code


def changed_settings(settings: BaseSettings) -> Mapping[str, Any]:
    """Return the settings that differ from their defaults, by name; secrets and structures as `set`."""
    fields = type(settings).model_fields.items()
    values = {name: (getattr(settings, name), field.get_default(call_default_factory=True)) for name, field in fields}
    return {name: _shown(value) for name, (value, default) in values.items() if value != default}


def _shown(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | Path):
        return CREDENTIALS.sub("…", str(value))
    if isinstance(value, tuple | frozenset) and all(isinstance(item, str) for item in value):
        return sorted(value)
    return f"{value.__module__}.{value.__qualname__}" if isinstance(value, type) else HIDDEN
