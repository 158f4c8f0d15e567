"""`python -m training.projection`: learn the arrays of a model and write them. `--validate`: measure only."""

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from schemas.state.modes import GENERAL
from streams.adapters.embedding.catalog.presets import PRESETS, exported_entry
from streams.adapters.embedding.inference import local_model
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.inference.token_vectors import TokenProjection, TokenVectors
from streams.adapters.export.model_export import export_model
from training.projection.components import DIM, principal_components
from training.projection.conversations import CONVERSATIONS, read_conversations
from training.projection.means import common_means
from training.projection.projection_file import serialise_arrays
from training.projection.token_states import Haystack, build_haystacks
from training.projection.validation import Figures, cross_validate, recalls

ROOT = Path(__file__).parents[2]
EMBEDDING = Path(local_model.__file__).parent
LEARNED_FOR = {preset.name: preset for preset in PRESETS if preset.learned}


def main() -> None:
    """Learn from all conversations and write the file, or cross-validate."""
    parser = argparse.ArgumentParser(prog="python -m training.projection", description=__doc__)
    parser.add_argument("--validate", action="store_true", help="measure only")
    parser.add_argument("--model", choices=LEARNED_FOR, default=GENERAL, help="the preset to learn for")
    parser.add_argument("--conversations", type=Path, default=CONVERSATIONS, help="a folder of conv-*.json")
    options = parser.parse_args()
    models = Path(os.environ.get("MODESTREAM_MODEL_DIR") or ROOT / ".modestream" / "models")
    local = exported_entry(models, LEARNED_FOR[options.model], "int8").local
    export_model(local.name, local.directory, "int8", print)
    with threadpool_limits(1, "blas"):  # The order of summation, and so the bytes, depends on the number of threads.
        made = build_haystacks(read_conversations(options.conversations), local)
        _validate(made, local) if options.validate else _write(made, local)


def _write(made: Sequence[Haystack], local: LocalModel) -> None:
    content = serialise_arrays("linear", {"passage": principal_components(made), **common_means(made)})
    EMBEDDING.joinpath(local.learned).write_bytes(content)
    print(TokenVectors.of(local.learned_arrays(), local.dim).name)  # noqa: T201


def _validate(made: Sequence[Haystack], local: LocalModel) -> None:
    """Print recall@5 and recall@10, of single turns and of turns with their neighbours, for several projections."""
    for dim in (DIM, 96, 64):
        _show(f"components, {dim}", cross_validate(made, partial(principal_components, dim=dim)))
    learned = local.learned_arrays()
    assert learned is not None
    shipped, plain = TokenProjection.of(learned), TokenProjection.plain(local.dim)
    for name, projection in (("as it is kept", shipped), ("plain", plain)):
        _show(f"{name}, {projection.name}", np.concatenate([recalls(one, projection) for one in made]))


def _show(name: str, figures: Figures) -> None:
    print(f"{name:32}", *(f"{100 * share:.1f}" for share in figures.mean(axis=0)))  # noqa: T201


if __name__ == "__main__":
    main()
