"""Where a model's files are: in the folder that was named for it, or in fastembed's own download.

Enters: a model as described, and the repository that it may be downloaded from. Leaves: a folder that has its file.
Guaranteed: a folder that is filled by hand is used before anything is downloaded; an error says what to put where.
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
"""What has to stand beside the model; `config.json` and `special_tokens_map.json` are read where they are."""

OFFLINE_VARIABLE = "HF_HUB_OFFLINE"
"""The environment variable of Hugging Face's client that forbids downloads; fastembed honours it too."""

TRUTHY_VALUES = frozenset({"1", "TRUE", "YES", "ON"})
"""What both take for a yes, in any case."""


def ensure_exported(local: LocalModel, precision: Precision) -> None:
    """Run the exporter where the model's folder does not hold its export; the memory goes back with that process.

    Blocks for some seconds then; each step is a line on standard output. Raises ModelMissing, with the reason.
    """
    if is_complete(local.name, local.directory, precision):
        return
    command = (*EXPORT_COMMAND, local.name, str(local.directory), precision)
    export = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)  # noqa: S603
    sys.stderr.write(export.stderr)
    if export.returncode:
        reason = (export.stderr.strip().splitlines() or [f"the exporter ended with code {export.returncode}"])[-1]
        raise ModelMissing(f"{local.name} could not be exported: {reason}")


def ensure_model_folder(local: LocalModel, hub: str | None) -> Path:
    """The model's folder, after a download where its own is not filled and `hub` names a repository.

    The download may take minutes, and 39 s to find out that there is no network. It goes beside the model's folder,
    and is found again there. Raises FileNotFoundError, which says what is missing and what to do.
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
        why = f"{OFFLINE_VARIABLE} forbids the download" if forbidden else f"the download failed: {problem}"
        raise FileNotFoundError(
            f"{', '.join(missing)} not found, and {why}: put the files of {hub} into {local.directory},"
            " or allow the download"
        ) from problem


def missing_files(local: LocalModel) -> list[str]:
    """Which files the model's folder lacks."""
    return [name for name in (local.model_file, *TOKENIZER_FILES) if not (local.directory / name).is_file()]


def download_model(local: LocalModel, hub: str) -> Path:
    """The folder of fastembed's download, which is made where it isn't there; blocks. Raises ValueError without it."""
    # Imported here: the process that has its files needs none of it.
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
