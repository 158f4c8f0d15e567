"""A reader in its own process: `python -m modestream_client.imports FORMAT FILE [ZONE]`.

Leaves, on standard output, lines of JSON: `{"is_of_format": true}`, or `{"refused": why}` and nothing else; an entry
each; at last `{"is_whole": true}`. The process has bounded memory and processor time: beyond these it ends before that
line.
"""

import json
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from modestream_client.imports import ExportFormat, NotOfFormat, read_export, zone_of
from modestream_client.imports.reading import entry_line

MAX_MEMORY_BYTES = 2 * 1024**3
MAX_CPU_S = 1800
NICENESS = 10


def main(arguments: list[str]) -> None:
    """Read a file, and print its entries."""
    for limit, most in ((resource.RLIMIT_AS, MAX_MEMORY_BYTES), (resource.RLIMIT_CPU, MAX_CPU_S)):
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))
    os.nice(NICENESS)
    export_format, path, *zones = arguments
    with Path(path).open("rb") as source:
        try:
            _print_all(read_export(source, cast(ExportFormat, export_format), zone_of(zones[0] if zones else None)))
        except NotOfFormat as problem:
            sys.stdout.buffer.write(json.dumps({"refused": str(problem)}).encode() + b"\n")


def _print_all(entries: Any) -> None:
    write = sys.stdout.buffer.write
    first = next(entries, None)
    write(json.dumps({"is_of_format": True}).encode() + b"\n")
    sys.stdout.buffer.flush()
    if first is not None:
        write(entry_line(first))
    for entry in entries:
        write(entry_line(entry))
    write(json.dumps({"is_whole": True}).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
