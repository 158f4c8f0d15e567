"""Where a model's files are: in the folder that was named for it, or in fastembed's own download.

Enters: a model as described, and the repository that it may be downloaded from. Leaves: a folder that has its file.
Guaranteed: a folder that is filled by hand is used before anything is downloaded; an error says what to put where.
"""

import os
from pathlib import Path

from streams.adapters.embedding.inference.local_model import LocalModel

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
"""What has to stand beside the model; `config.json` and `special_tokens_map.json` are read where they are."""

OFFLINE_VARIABLE = "HF_HUB_OFFLINE"
"""The environment variable of Hugging Face's client that forbids downloads; fastembed honours it too."""

TRUTHY_VALUES = frozenset({"1", "TRUE", "YES", "ON"})
"""What both take for a yes, in any case."""


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
