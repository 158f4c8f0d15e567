"""`python -m training.projection`: makes and writes the projection. `--validate`: figures of unseen conversations."""

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from streams.adapters.embedding.token_projection import LEARNED, TokenProjection
from training.projection.components import DIM, components
from training.projection.conversations import CONVERSATIONS, read_all
from training.projection.projection_file import dumps
from training.projection.token_states import DIM as STATES_DIM
from training.projection.token_states import Haystack, haystacks
from training.projection.validation import Figures, recalls, unseen

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Make it of all conversations and write it, or of four fifths at a time and measure on the others."""
    parser = argparse.ArgumentParser(prog="python -m training.projection", description=__doc__)
    parser.add_argument("--validate", action="store_true", help="measure only")
    parser.add_argument("--conversations", type=Path, default=CONVERSATIONS, help="a folder of conv-*.json")
    options = parser.parse_args()
    models = Path(os.environ.get("MODESTREAM_MODEL_DIR") or ROOT / ".modestream" / "models")
    with threadpool_limits(1, "blas"):  # The order of sums, and so the bytes, depends on the number of threads.
        made = haystacks(read_all(options.conversations), models)
        _validate(made) if options.validate else _write(made)


def _write(made: Sequence[Haystack]) -> None:
    LEARNED.write_bytes(dumps("linear", components(made)))
    print(TokenProjection.load().name)  # noqa: T201


def _validate(made: Sequence[Haystack]) -> None:
    """Each way's recall at 5 and at 10, over the turn and over the turn and its neighbours."""
    for dim in (DIM, 96, 64):
        _show(f"components, {dim}", unseen(made, partial(components, dim=dim)))
    for name, projection in (("as it is kept", TokenProjection.load()), ("plain", TokenProjection.plain(STATES_DIM))):
        _show(f"{name}, {projection.name}", np.concatenate([recalls(one, projection) for one in made]))


def _show(name: str, figures: Figures) -> None:
    print(f"{name:32}", *(f"{100 * share:.1f}" for share in figures.mean(axis=0)))  # noqa: T201


if __name__ == "__main__":
    main()
