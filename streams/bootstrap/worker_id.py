"""The id of a data directory's worker: the same after every start, so that Kafka gives it its partitions back."""

import re
import uuid
from collections.abc import Sequence
from pathlib import Path

from streams.adapters.durable_files import write_durably

WORKER_ID = re.compile(r"[0-9a-f]{32}")
"""What `load_worker_id` writes."""


def load_worker_id(file: Path) -> str:
    """Return the worker id of this data directory, the same after every start; a damaged file gets a new one."""
    known = file.read_text(errors="replace").strip() if file.exists() else ""
    if not WORKER_ID.fullmatch(known):
        write_durably(file, known := uuid.uuid4().hex)
    return known


def worker_ids(data_dir: Path, worker_id: str | None, number: int) -> Sequence[str | None]:
    """Return the ids of so many workers of a data directory, the same after every start, whatever the number.

    The first has the id of the settings, or, as None, that of its file: it keeps the id of a single worker.
    """
    if number == 1:
        return (worker_id,)
    data_dir.mkdir(parents=True, exist_ok=True)
    first = worker_id or load_worker_id(data_dir / "worker.id")
    return (worker_id, *(f"{first}-{place}" for place in range(2, number + 1)))
