"""The real small models for tests.

Each is exported once per test run, or for all that share `TEST_MODEL_DIR`.
"""

import os
from pathlib import Path

import pytest

from streams.adapters.export.model_export import export_model
from streams.adapters.exported_models import Precision


def exported_minilm(precision: Precision, temporary: pytest.TempPathFactory) -> Path:
    return _exported("all-MiniLM-L6-v2", precision, temporary)


def english_models(temporary: pytest.TempPathFactory) -> Path:
    """Return a folder with the English model alone: a worker would load the multilingual one, too, where it lies."""
    english, folder = exported_minilm("int8", temporary), temporary.mktemp("models")
    (folder / english.name).symlink_to(english)
    return folder


def exported_e5(precision: Precision, temporary: pytest.TempPathFactory) -> Path:
    """Return the folder of the multilingual model; an export takes 5 to 10 s."""
    return _exported("multilingual-e5-small", precision, temporary)


def _exported(model: str, precision: Precision, temporary: pytest.TempPathFactory) -> Path:
    cache_dir = os.environ.get("TEST_MODEL_DIR")
    folder = Path(cache_dir) if cache_dir else temporary.getbasetemp() / "models"
    return export_model(model, folder / f"{model}-{precision}", precision, print)
