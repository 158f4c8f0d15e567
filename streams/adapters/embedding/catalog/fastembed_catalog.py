"""The text models of fastembed's catalog as embedders that users may declare (`EMBEDDERS_ALLOWED`).

Guaranteed: every text model of the installed fastembed, by its name there, and each gives the vectors that fastembed
gives. No model is loaded.
"""

from collections.abc import Container
from pathlib import Path

from schemas.state.modes import Pooling
from streams.adapters.embedding.catalog.fetching import FetchLimits
from streams.adapters.embedding.catalog.presets import AS_FOUND, CatalogEntry
from streams.adapters.embedding.inference.local_model import TOKENIZER_FILES, LocalModel


def fastembed_entries(models: Path, limits: FetchLimits, taken: Container[str] = ()) -> dict[str, CatalogEntry]:
    """Return the embedders by name, with folders below `models`; without the `taken` names, which are presets.

    One whose published size is above the limit says so in `refused`.
    """
    # Imported here: it takes a second and 80 MB, which deployments with presets alone do without.
    from fastembed import TextEmbedding  # noqa: PLC0415
    from fastembed.text.custom_text_embedding import CustomTextEmbedding  # noqa: PLC0415
    from fastembed.text.onnx_embedding import OnnxTextEmbedding  # noqa: PLC0415
    from fastembed.text.pooled_embedding import PooledEmbedding  # noqa: PLC0415
    from fastembed.text.pooled_normalized_embedding import PooledNormalizedEmbedding  # noqa: PLC0415

    own_runs: dict[type, tuple[Pooling, bool]] = {
        OnnxTextEmbedding: ("cls", True),
        PooledNormalizedEmbedding: ("mean", True),
        PooledEmbedding: ("mean", False),
    }
    """Kinds that this project runs itself, which adds token vectors: how they pool, and whether they normalise."""

    entries = {}
    # Left out: the models that this process has opened from a folder, and so added to fastembed's.
    for kind in (each for each in TextEmbedding.EMBEDDINGS_REGISTRY if each is not CustomTextEmbedding):
        for model in kind._list_supported_models():  # noqa: SLF001 - the public list does not tell the kinds apart
            if model.model in taken or model.sources.hf is None or model.dim is None:
                continue
            pooling, normalize = own_runs.get(kind, ("mean", False))
            tokenizer_files = TOKENIZER_FILES if model.model_file.endswith(".onnx") else TOKENIZER_FILES[:1]
            local = LocalModel(
                name=model.model,
                directory=models / model.model.replace("/", "--"),
                dim=model.dim,
                precision=AS_FOUND,
                pooling=pooling,
                normalize=normalize,
                model_file=model.model_file,
                fastembed_id="" if kind in own_runs else model.model,
                companions=(*tokenizer_files, *model.additional_files),
            )
            size = int(model.size_in_GB * 1e9)
            is_refused = bool(limits.max_model_bytes) and size > limits.max_model_bytes
            limit = f"{limits.max_model_bytes / 1e6:,.0f} MB (FETCH_MAX_MODEL_MB)"
            entries[model.model] = CatalogEntry(
                model.model,
                local,
                model.sources.hf,
                megabytes=round(size / 1e6),
                refused=f"{model.model} has {size / 1e6:,.0f} MB, more than {limit}" if is_refused else "",
                is_of_fastembed=True,
            )
    return entries
