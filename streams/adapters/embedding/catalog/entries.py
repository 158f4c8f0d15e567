"""The embedders by name, and the source of each one's model.

Enters: the folder of models and the setting `EMBEDDERS`. Leaves: an entry for each name that a mode may use.
Guaranteed: `general` is always MiniLM, with the small multilingual model for other languages where its package is
installed; a name means one embedder. No model is loaded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from schemas.models.embedders import ConfiguredEmbedder, EmbedderDescription
from schemas.state.modes import GENERAL
from streams.adapters.embedding.catalog.presets import GENERAL_PRESET, MULTILINGUAL_SMALL, PRESETS, Preset
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.exported_models import E5, Precision

AS_FOUND = "as found"
"""The precision of a model that was not exported here: whatever its file has; the file's hash identifies it."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One embedder. `hub` is the repository to download its model from, `export` the precision to export it in.

    `multilingual` is the embedder of the languages that this one can't read.
    """

    name: str
    local: LocalModel
    hub: str | None = None
    export: Precision | None = None
    multilingual: "CatalogEntry | None" = None

    @property
    def identity(self) -> str:
        """Everything that determines its vectors, as far as it is known before the model is loaded."""
        learned = self.local.learned_arrays()
        return f"{self.local.name}-{self.local.precision}-{'plain' if learned is None else learned.digest}"

    @property
    def description(self) -> EmbedderDescription:
        """What is known before the model is loaded."""
        return EmbedderDescription(
            name=self.name,
            dim=self.local.dim,
            query_prefix=self.local.query_prefix,
            passage_prefix=self.local.passage_prefix,
        )


def build_catalog(
    models: Path, configured: Mapping[str, ConfiguredEmbedder], precision: Precision
) -> dict[str, CatalogEntry]:
    """Return every embedder by each of its names: preset, model id with and without organisation, configured name.

    A configured embedder replaces the preset of its name. `precision` is that of MiniLM. Raises ValueError for one that
    would replace `general`.
    """
    reject_general_override(configured)
    entries = {preset.name: _entry(models, preset, precision) for preset in PRESETS if preset.name not in configured}
    if E5.is_installed() and MULTILINGUAL_SMALL.name in entries:
        entries[GENERAL] = replace(entries[GENERAL], multilingual=entries[MULTILINGUAL_SMALL.name])
    by_name = {name: entries[preset.name] for preset in PRESETS if preset.name in entries for name in preset.names}
    return by_name | {name: configured_entry(name, embedder) for name, embedder in configured.items()}


def reject_general_override(configured: Mapping[str, ConfiguredEmbedder]) -> None:
    """Raise ValueError if a configured embedder has one of the names of `general`."""
    for name in GENERAL_PRESET.names:
        if name in configured:
            raise ValueError(
                f"EMBEDDERS may not hold {name!r}: this name is reserved for the embedder of the mode"
                f" {GENERAL_PRESET.name!r}, which all users share; give yours another name, and let modes name it"
            )


def _entry(models: Path, preset: Preset, precision: Precision) -> CatalogEntry:
    if preset.hub is not None:
        return preset_entry(models, preset)
    return exported_entry(models, preset, precision if preset is GENERAL_PRESET else "int8")


def exported_entry(models: Path, preset: Preset, precision: Precision) -> CatalogEntry:
    """Return the entry of a preset that is exported from the weights in an installed package."""
    local = _local(preset, models / f"{preset.model_name}-{precision}", precision)
    return CatalogEntry(preset.name, local, export=precision)


def preset_entry(models: Path, preset: Preset) -> CatalogEntry:
    """Return the entry of a preset with its model in the folder of its name, or downloaded."""
    return CatalogEntry(preset.name, _local(preset, models / preset.name, AS_FOUND), hub=preset.hub)


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


def configured_entry(name: str, configured: ConfiguredEmbedder) -> CatalogEntry:
    """Return the entry of an embedder of the setting `EMBEDDERS`."""
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
