"""Which embedders there are, under which names, and where their models come from.

Enters: the folder of models and the setting `EMBEDDERS`. Leaves: an entry for each name that a mode may use.
Guaranteed: `general` is always MiniLM, with the small multilingual model for other languages where its package is
installed; a name means one embedder. No model is looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from schemas.embedders import ConfiguredEmbedder, EmbedderDescription
from schemas.modes import GENERAL
from streams.adapters.embedding.catalog.presets import GENERAL_PRESET, MULTILINGUAL_SMALL, PRESETS, Preset
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.exported_models import E5, Precision

AS_FOUND = "as found"
"""The precision of a model that we did not make: its file decides, and the file's hash tells it apart."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One embedder. `hub` is where its model may be downloaded from, `export` the precision it is made here in.

    `others` is the embedder that takes the languages which this one can't read.
    """

    name: str
    local: LocalModel
    hub: str | None = None
    export: Precision | None = None
    others: "CatalogEntry | None" = None

    @property
    def identity(self) -> str:
        """What decides on its vectors, as far as it is known before it is loaded."""
        learned = self.local.learned_arrays()
        return f"{self.local.name}-{self.local.precision}-{'plain' if learned is None else learned.digest}"

    @property
    def description(self) -> EmbedderDescription:
        """What is known of it before it is loaded."""
        return EmbedderDescription(
            name=self.name,
            dim=self.local.dim,
            query_prefix=self.local.query_prefix,
            passage_prefix=self.local.passage_prefix,
        )


def build_catalog(
    models: Path, configured: Mapping[str, ConfiguredEmbedder], precision: Precision
) -> dict[str, CatalogEntry]:
    """Every embedder by each of its names: preset, model id with and without organisation, configured name.

    A configured embedder takes the place of a preset of its name. `precision` is that of MiniLM.
    Raises ValueError for one that would take the place of `general`.
    """
    reject_general_override(configured)
    entries = {preset.name: _entry(models, preset, precision) for preset in PRESETS if preset.name not in configured}
    if E5.is_installed() and MULTILINGUAL_SMALL.name in entries:
        entries[GENERAL] = replace(entries[GENERAL], others=entries[MULTILINGUAL_SMALL.name])
    by_name = {name: entries[preset.name] for preset in PRESETS if preset.name in entries for name in preset.names}
    return by_name | {name: configured_entry(name, one) for name, one in configured.items()}


def reject_general_override(configured: Mapping[str, ConfiguredEmbedder]) -> None:
    """Raise ValueError where a configured embedder has a name of the general one."""
    for name in GENERAL_PRESET.names:
        if name in configured:
            raise ValueError(
                f"EMBEDDERS may not hold {name!r}: it names the embedder that everyone's memories of the mode"
                f" {GENERAL_PRESET.name!r} lie in; give yours another name, and let modes name it"
            )


def _entry(models: Path, preset: Preset, precision: Precision) -> CatalogEntry:
    if preset.hub is not None:
        return preset_entry(models, preset)
    return exported_entry(models, preset, precision if preset is GENERAL_PRESET else "int8")


def exported_entry(models: Path, preset: Preset, precision: Precision) -> CatalogEntry:
    """A preset whose model is made here from a package that brings its weights."""
    local = _local(preset, models / f"{preset.model_name}-{precision}", precision)
    return CatalogEntry(preset.name, local, export=precision)


def preset_entry(models: Path, preset: Preset) -> CatalogEntry:
    """A preset whose model lies in the folder of its name, or is downloaded."""
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
    """An embedder of the setting `EMBEDDERS`."""
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
