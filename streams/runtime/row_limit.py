"""The limit of a table's row, checked before anything of it is written.

Enters: a table's name and a serialised value. Guaranteed: an accepted row is far below the largest record of a
changelog (`streams.topics.MAX_OUTPUT_BYTES`), so that Kafka never refuses a write that the local store has accepted.
"""

from collections.abc import Mapping

from schemas.failures import RowTooLarge

MAX_ROW_BYTES = 2 * 1024 * 1024
"""An eighth of the largest record of a changelog. 256 usual categories with summaries take 0.8 MB; 64 modes with
descriptions of a page, 0.3 MB."""

MAX_MEMORY_ROW_BYTES = 12 * 1024 * 1024
"""A memory's row holds its turn, which is a record of up to 8 MiB, and its analysis."""

MAX_JOBS_ROW_BYTES = 10 * 1024 * 1024
"""A boundary's row of jobs holds 4 MiB of their answers as texts, which JSON may write twice as long."""

LIMITS: Mapping[str, tuple[str, int]] = {
    "memories": ("MAX_MEMORY_ROW_BYTES", MAX_MEMORY_ROW_BYTES),
    "jobs": ("MAX_JOBS_ROW_BYTES", MAX_JOBS_ROW_BYTES),
}
"""Name and bytes of the limit of tables that have their own."""


def limit_row(table: str, value: bytes | None) -> None:
    """Raise RowTooLarge for a value beyond the limit of its table."""
    name, limit = LIMITS.get(table, ("MAX_ROW_BYTES", MAX_ROW_BYTES))
    if value is not None and len(value) > limit:
        raise RowTooLarge(table, len(value), name, limit)
