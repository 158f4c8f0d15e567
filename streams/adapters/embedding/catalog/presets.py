"""The embedders by name: the built-in ones as data, the configured ones, and the source of each one's model.

Guaranteed: presets have the dimension, pooling, prefixes, token limit and file that each model was published with;
`general` is always MiniLM, with a small multilingual model where its package is installed. No model is loaded.
"""

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from schemas.state.modes import GENERAL, ConfiguredEmbedder, EmbedderDescription, Pooling
from streams.adapters.embedding.catalog.fetching import FetchLimits
from streams.adapters.embedding.inference.local_model import TOKENIZER_FILES, LocalModel
from streams.adapters.exported_models import E5, Precision

BGE_QUERY = "Represent this sentence for searching relevant passages: "
"""The query prefix of bge's authors: https://huggingface.co/BAAI/bge-base-en-v1.5. Passages have no prefix."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A published model. `hub` is the repository that has it as ONNX; None: it is exported here.

    `learned` names the file of arrays learned from its vectors; empty without one.
    """

    name: str
    model_id: str
    dim: int
    max_tokens: int
    pooling: Pooling
    model_file: str = "model.onnx"
    hub: str | None = None
    query_prefix: str = ""
    passage_prefix: str = ""
    learned: str = ""
    languages: str = "English"
    megabytes: int | None = None
    """Size of the model's file: of the download, or of the export."""

    @property
    def model_name(self) -> str:
        """The model's id without the organisation."""
        return self.model_id.rsplit("/", 1)[-1]

    @property
    def names(self) -> tuple[str, str, str]:
        """The names that a mode may use: the preset's, the model's id with and without the organisation."""
        return self.name, self.model_id, self.model_name


GENERAL_PRESET = Preset(
    name="general",
    model_id="sentence-transformers/all-MiniLM-L6-v2",
    dim=384,
    max_tokens=256,
    pooling="mean",
    learned="all-MiniLM-L6-v2.bin",
    megabytes=23,
)
"""Always loaded: it embeds the mode `general`, which every user has."""

MULTILINGUAL_SMALL = Preset(
    name="multilingual-small",
    model_id="intfloat/multilingual-e5-small",
    dim=384,
    max_tokens=512,
    pooling="mean",
    query_prefix="query: ",
    passage_prefix="passage: ",
    learned="multilingual-e5-small.bin",
    languages="some 100 languages",
    megabytes=79,
)
"""Embeds non-English texts in the mode `general`; loaded with the first such text."""

PRESETS = (
    GENERAL_PRESET,
    MULTILINGUAL_SMALL,
    Preset(
        name="code",
        model_id="jinaai/jina-embeddings-v2-base-code",
        dim=768,
        max_tokens=8192,
        pooling="mean",
        model_file="onnx/model.onnx",
        hub="jinaai/jina-embeddings-v2-base-code",
        languages="English and 30 programming languages",
        megabytes=640,
    ),
    Preset(
        name="journal",
        model_id="BAAI/bge-base-en-v1.5",
        dim=768,
        max_tokens=512,
        pooling="cls",
        model_file="model_optimized.onnx",
        hub="Qdrant/bge-base-en-v1.5-onnx-Q",
        query_prefix=BGE_QUERY,
        megabytes=210,
    ),
    Preset(
        name="research",
        model_id="BAAI/bge-large-en-v1.5",
        dim=1024,
        max_tokens=512,
        pooling="cls",
        hub="Qdrant/bge-large-en-v1.5-onnx",
        query_prefix=BGE_QUERY,
        megabytes=1200,
    ),
    Preset(
        name="multilingual",
        model_id="intfloat/multilingual-e5-base",
        dim=768,
        max_tokens=512,
        pooling="mean",
        model_file="onnx/model.onnx",
        hub="intfloat/multilingual-e5-base",
        languages="some 100 languages",
        megabytes=1110,
        query_prefix="query: ",
        passage_prefix="passage: ",
    ),
)
"""All presets normalise to length 1. Files and repositories are those that fastembed 0.9.1 downloads; it lacks
multilingual-e5-base, which has the model's own."""


AS_FOUND = "as found"
"""The precision of a model that was not exported here: unknown; the file's hash identifies it."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One embedder. `hub` is the repository to download its model from, `export` the precision to export it in.

    `multilingual` is the embedder for languages that this one can't read.
    """

    name: str
    local: LocalModel
    hub: str | None = None
    export: Precision | None = None
    multilingual: "CatalogEntry | None" = None
    languages: str = ""
    megabytes: int | None = None
    refused: str = ""
    is_of_fastembed: bool = False

    @property
    def identity(self) -> str:
        """Everything known before the model is loaded that determines its vectors."""
        learned = self.local.learned_arrays()
        return f"{self.local.name}-{self.local.precision}-{'plain' if learned is None else learned.digest}"

    @property
    def description(self) -> EmbedderDescription:
        """The properties known before the model is loaded."""
        other = self.multilingual
        return EmbedderDescription(
            name=self.name,
            dim=self.local.dim,
            query_prefix=self.local.query_prefix,
            passage_prefix=self.local.passage_prefix,
            languages=self.languages if other is None else f"{self.languages}; by {other.name} {other.languages}",
            max_tokens=self.local.max_tokens,
            megabytes=self.megabytes,
            refused=self.refused,
        )


def build_catalog(
    models: Path,
    configured: Mapping[str, ConfiguredEmbedder],
    precision: Precision,
    allowed: Collection[str] | None = None,
) -> dict[str, CatalogEntry]:
    """Return every embedder by each of its names: preset, model id with and without organisation, configured name.

    A configured embedder replaces the preset of its name. `precision` is that of MiniLM. `allowed` names
    the presets besides the two of `general`, None for all. Raises ValueError for one that would replace `general`.
    """
    for name in GENERAL_PRESET.names:
        if name in configured:
            raise ValueError(
                f"EMBEDDERS may not hold {name!r}: this name is reserved for the embedder of the mode"
                f" {GENERAL_PRESET.name!r}, which all users share; give yours another name, and let modes name it"
            )
    always = (GENERAL_PRESET, MULTILINGUAL_SMALL)
    entries = {
        preset.name: _entry(models, preset, precision)
        for preset in PRESETS
        if preset.name not in configured and (allowed is None or preset in always or preset.name in allowed)
    }
    if E5.is_installed() and MULTILINGUAL_SMALL.name in entries:
        entries[GENERAL] = replace(entries[GENERAL], multilingual=entries[MULTILINGUAL_SMALL.name])
    by_name = {name: entries[preset.name] for preset in PRESETS if preset.name in entries for name in preset.names}
    return by_name | {name: _configured_entry(name, embedder) for name, embedder in configured.items()}


def _entry(models: Path, preset: Preset, precision: Precision) -> CatalogEntry:
    if preset.hub is not None:
        local = _local(preset, models / preset.name, AS_FOUND)
        return CatalogEntry(preset.name, local, preset.hub, languages=preset.languages, megabytes=preset.megabytes)
    return exported_entry(models, preset, precision if preset is GENERAL_PRESET else "int8")


def exported_entry(models: Path, preset: Preset, precision: Precision) -> CatalogEntry:
    """Return the entry of a preset that is exported from the weights in an installed package."""
    local = _local(preset, models / f"{preset.model_name}-{precision}", precision)
    return CatalogEntry(preset.name, local, export=precision, languages=preset.languages, megabytes=preset.megabytes)


def _local(preset: Preset, directory: Path, precision: str) -> LocalModel:
    return LocalModel(
        name=preset.model_name,
        directory=directory,
        dim=preset.dim,
        precision=precision,
        pooling=preset.pooling,
        max_tokens=preset.max_tokens,
        query_prefix=preset.query_prefix,
        passage_prefix=preset.passage_prefix,
        model_file=preset.model_file,
        learned=preset.learned,
    )


def _configured_entry(name: str, configured: ConfiguredEmbedder) -> CatalogEntry:
    local = LocalModel(
        name=name,
        directory=configured.path,
        dim=configured.dim,
        precision=AS_FOUND,
        pooling=configured.pooling,
        normalize=configured.normalize,
        max_tokens=configured.max_tokens,
        query_prefix=configured.query_prefix,
        passage_prefix=configured.passage_prefix,
        model_file=configured.model_file,
    )
    return CatalogEntry(name, local)


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
