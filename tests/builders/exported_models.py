"""The real small models for tests.

Each is exported once in a test run, or kept between runs where `MODESTREAM_MODEL_DIR` says.
"""

import os
from pathlib import Path

import pytest

from streams.adapters.export.model_export import export_model
from streams.adapters.exported_models import Precision


def exported_minilm(precision: Precision, temporary: pytest.TempPathFactory) -> Path:
    """Give the folder of the English model in that precision; exports it where it isn't yet."""
    return _exported("all-MiniLM-L6-v2", precision, temporary)


def exported_e5(precision: Precision, temporary: pytest.TempPathFactory) -> Path:
    """Give the folder of the model of many languages; takes 5 to 10 s where it isn't exported yet."""
    return _exported("multilingual-e5-small", precision, temporary)


def _exported(model: str, precision: Precision, temporary: pytest.TempPathFactory) -> Path:
    kept = os.environ.get("MODESTREAM_MODEL_DIR")
    folder = Path(kept) if kept else temporary.getbasetemp() / "models"
    return export_model(model, folder / f"{model}-{precision}", precision, print)
