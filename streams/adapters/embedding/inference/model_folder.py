"""Finds a model's files, or has them exported or downloaded.

Enters: a described model, and where its files may come from. Leaves: a folder with the files. Guaranteed: a folder that
has the files is used as it is; an error says which files to put where.
"""

import os
import subprocess
import sys
from pathlib import Path

from schemas.failures import ModelMissing
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.exported_models import Precision, is_complete

EXPORT_COMMAND = (sys.executable, "-m", "streams.adapters.export", "--exit-with-parent")

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
"""Required beside the model; `config.json` and `special_tokens_map.json` are optional."""

OFFLINE_VARIABLE = "HF_HUB_OFFLINE"
"""The environment variable by which Hugging Face's client and fastembed forbid downloads."""

TRUTHY_VALUES = frozenset({"1", "TRUE", "YES", "ON"})
"""The values that both of them take for a yes, ignoring case."""


def ensure_exported(local: LocalModel, precision: Precision) -> None:
    """Run the exporter if the model's folder lacks the complete export. Its memory is freed with its process.

    Blocks for some seconds; each step is a line on standard output. Raises ModelMissing, with the reason.
    """
    if is_complete(local.name, local.directory, precision):
        return
    command = (*EXPORT_COMMAND, local.name, str(local.directory), precision)
    export = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)  # noqa: S603
    sys.stderr.write(export.stderr)
    if export.returncode:
        code = f"the exporter ended with code {export.returncode}"
        # Python's own status after an exception; a killed exporter has no reason on its last line.
        reason = [code, *export.stderr.strip().splitlines()][-1] if export.returncode == 1 else code
        raise ModelMissing(f"{local.name} could not be exported: {reason}")


def ensure_model_folder(local: LocalModel, hub: str | None) -> Path:
    """Return the model's folder or, if it lacks files, the folder of the download from the repository `hub`.

    A download may take minutes, and 39 s to fail without a network. It is kept beside the model's folder for the next
    start. Raises FileNotFoundError, which says what is missing and what to do.
    """
    missing = missing_files(local)
    if not missing:
        return local.directory
    if hub is None:
        raise FileNotFoundError(f"{', '.join(missing)} not found: put the model's files into {local.directory}")
    try:
        return download_model(local, hub)
    except Exception as problem:
        forbidden = os.environ.get(OFFLINE_VARIABLE, "").strip().upper() in TRUTHY_VALUES
        reason = f"{OFFLINE_VARIABLE} forbids the download" if forbidden else f"the download failed: {problem}"
        raise FileNotFoundError(
            f"{', '.join(missing)} not found, and {reason}: put the files of {hub} into {local.directory},"
            " or allow the download"
        ) from problem


def missing_files(local: LocalModel) -> list[str]:
    """Return the names of the files that the model's folder lacks."""
    return [name for name in (local.model_file, *TOKENIZER_FILES) if not (local.directory / name).is_file()]


def download_model(local: LocalModel, hub: str) -> Path:
    """Return the folder of fastembed's download; block for it if it is missing. Raises ValueError on failure."""
    # Imported here: a process with local files does not need them.
    from fastembed.common.model_description import DenseModelDescription, ModelSource  # noqa: PLC0415
    from fastembed.text.onnx_embedding import OnnxTextEmbedding  # noqa: PLC0415

    described = DenseModelDescription(
        model=hub,
        sources=ModelSource(hf=hub),
        model_file=local.model_file,
        description="",
        license="",
        size_in_GB=0.0,
        dim=local.dim,
    )
    cache = local.directory.parent
    cache.mkdir(parents=True, exist_ok=True)
    return OnnxTextEmbedding.download_model(described, str(cache))
