"""The id of a data directory's worker: the same after every start, so that Kafka gives it its partitions back."""

import re
import uuid
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
