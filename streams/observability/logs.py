"""Structured logs of workers and gateways: one line of JSON per event on standard error.

Of a worker's libraries warnings and above are written; repeated ones at intervals. Tracebacks have no local variables:
they would contain the texts of memories.
"""

import logging
import sys

import structlog
from structlog.typing import Processor

from streams.observability.repeated_lines import RepeatedLines
from streams.observability.tracing import add_request_fields


def configure_logs(
    level: str, *, libraries: str = "warning", own: str = "streams", add_fields: Processor = add_request_fields
) -> None:
    """Send the events of structlog and of the standard library to standard error.

    `libraries` is the level of the standard library's loggers. Those whose names begin with `own` may repeat a line.
    `add_fields` adds the ids of the request under way.
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
    # Reply topics of callers come and go; each deleted one would be an error line at every refresh.
    logging.getLogger("aiokafka.cluster").setLevel(logging.CRITICAL)
    logging.getLogger("mode.timers").setLevel(logging.ERROR)
