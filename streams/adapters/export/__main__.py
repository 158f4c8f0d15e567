"""Export one model: `python -m streams.adapters.export MODEL FOLDER PRECISION`.

Standard output has a line of JSON for each step. On failure the last line on standard error has the reason, and the
exit status is 1.
"""

import argparse
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from streams.adapters.child_processes import LOW_PRIORITY, end_with_parent
from streams.adapters.export.model_export import export_model
from streams.adapters.exported_models import E5, EXPORTED_MODELS, Precision


def main() -> None:
    parser = argparse.ArgumentParser("python -m streams.adapters.export", description="Export a model to ONNX.")
    parser.add_argument("model", choices=EXPORTED_MODELS)
    parser.add_argument("folder", type=Path, help="where the model is written")
    parser.add_argument("precision", choices=get_args(Precision))
    parser.add_argument("--exit-with-parent", action="store_true", help="end when standard input is closed")
    options = parser.parse_args()
    if options.exit_with_parent:
        end_with_parent()
    # Beside the first turns and questions; it takes 5 s of a core.
    if options.model == E5.name:
        os.nice(LOW_PRIORITY)
    try:
        export_model(options.model, options.folder, options.precision, _print_step)
    except FileNotFoundError as problem:
        sys.exit(str(problem))


def _print_step(step: str) -> None:
    """Print a step as the worker's log has it, where it ends up."""
    line = {"event": step, "level": "info", "timestamp": datetime.now(UTC).isoformat()}
    print(json.dumps(line), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
