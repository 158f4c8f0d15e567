"""What `up` is asked to do."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streams.up.console import Tell, tell
from streams.up.jars import default_cache_dir
from streams.up.liveness import LIVENESS_INTERVAL_S

WORKER_COMMAND = (sys.executable, "-m", "streams", "worker")
"""The worker in the same Python; its settings come in its environment."""

Probe = Callable[[str], Awaitable[bool]]
"""Whether the worker answers requests over the broker at `host:port`. May raise Unavailable for no."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    """A data directory, a port, and how to know that requests are answered."""

    data_dir: Path
    port: int
    probe: Probe
    """Asked again until it says yes."""
    worker: Sequence[str] = WORKER_COMMAND
    cache: Path = field(default_factory=default_cache_dir)
    """Where Kafka itself lies, for every data directory."""
    liveness_interval_s: float = LIVENESS_INTERVAL_S
    tell: Tell = tell
