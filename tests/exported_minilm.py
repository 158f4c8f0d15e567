"""The real small model for tests.

Exported once in a test run, or kept between runs where `MODESTREAM_MODEL_DIR` says.
"""

import os
from pathlib import Path

import pytest

from streams.adapters.embedding.minilm_export import Precision, export


def exported_minilm(precision: Precision, temporary: pytest.TempPathFactory) -> Path:
    """Give the folder of the model in that precision; exports it where it isn't yet."""
    kept = os.environ.get("MODESTREAM_MODEL_DIR")
    folder = Path(kept) if kept else temporary.getbasetemp() / "models"
    return export(folder / f"all-MiniLM-L6-v2-{precision}", precision, print)
