"""Structured logs of workers and gateways: one line of JSON per event on standard error; first and last lines of a run.

A worker's libraries log warnings and above, repeated ones at intervals: while a broker is away aiokafka writes about
200 lines a second. Tracebacks have no local variables: they would contain the texts of memories. No line has a secret.
A run that ends, except by a kill of the system, has a last line with its code.
"""

import logging
import os
import re
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from pydantic_settings import BaseSettings
from structlog.typing import Processor

from schemas.version import VERSION
from streams.observability.tracing import add_request_fields

REPEAT_AFTER_S = 5.0
"""Seconds after which a line of the same kind is written again."""

MAX_KINDS = 256
"""Number of remembered kinds of lines, the last ones: some libraries write the variable part into the template."""


@dataclass(slots=True)
class Kind:
    """Last time that a line of one kind was written, and the number left out since."""

    written_at: float
    left_out: int = 0


class RepeatedLines(logging.Filter):
    """Lets the lines of one kind through at intervals: those of one logger, level and template."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: OrderedDict[tuple[str, int, str], Kind] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if the line is to be written; add to it how many were left out before."""
        now, key = self._clock(), (record.name, record.levelno, str(record.msg))
        kind = self._kinds.get(key)
        if kind is not None and now < kind.written_at + REPEAT_AFTER_S:
            kind.left_out += 1
            return False
        self._kinds[key] = Kind(now)
        self._kinds.move_to_end(key)
        if len(self._kinds) > MAX_KINDS:
            self._kinds.popitem(last=False)
        if kind is not None and kind.left_out:
            record.msg, record.args = f"{record.getMessage()} ({kind.left_out} more since the last such line)", None
        return True


LIBRARY_LEVELS = {
    # Reply topics of callers come and go; each deleted one would be an error line at every refresh.
    "aiokafka.cluster": logging.CRITICAL,
    "mode.timers": logging.ERROR,
    # One line per request to a provider.
    "httpx": logging.WARNING,
    # It logs every request as the end of a session.
    "mcp": logging.WARNING,
}


def configure_logs(
    level: str,
    *,
    libraries: str = "warning",
    kafka_client: str = "warning",
    own: str = "streams",
    add_fields: Processor = add_request_fields,
) -> None:
    """Send the events of structlog and of the standard library to standard error.

    `libraries` is the level of the standard library's loggers, `kafka_client` that of the Kafka client. Loggers with
    names that begin with `own` may repeat a line. `add_fields` adds the ids of the current request.
    """
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    named: list[Processor] = [structlog.contextvars.merge_contextvars, add_fields]
    shared: list[Processor] = [*named, structlog.processors.add_log_level, stamp]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, structlog.processors.JSONRenderer()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    render: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.JSONRenderer(),
    ]
    foreign: list[Processor] = [*shared, structlog.stdlib.add_logger_name, structlog.processors.format_exc_info]
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=render, foreign_pre_chain=foreign))
    repeated = RepeatedLines()
    handler.addFilter(lambda record: record.name.startswith(own) or repeated.filter(record))
    logging.basicConfig(handlers=[handler], level=libraries.upper(), force=True)
    logging.getLogger("aiokafka").setLevel(kafka_client.upper())
    for name, library_level in LIBRARY_LEVELS.items():
        logging.getLogger(name).setLevel(library_level)


CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")
"""User and password in an address."""

HIDDEN = "set"
"""Stands for a hidden value: a secret, or a structure that may have one."""

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
