"""Exports a model from an installed package to a folder that fastembed loads, with no network and no torch.

Enters: a model's name, a target folder and a precision. Leaves: the folder, with `model.onnx`, the
tokenizer's files and a manifest. Guaranteed: the same bytes every time; the folder is there complete or not at all,
whatever is killed when, and whoever else exports at the same moment.
"""

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from streams.adapters.durable_files import fsync_path
from streams.adapters.export.e5_source import E5
from streams.adapters.export.minilm_source import MINILM
from streams.adapters.export.model_source import MODEL, ModelSource

Precision = Literal["int8", "fp32"]

MODEL_SOURCES = {source.name: source for source in (MINILM, E5)}
"""The models that can be exported, by name."""

EXPORT_FORMAT = 1
"""Counts up when an export comes out with other bytes, so that older folders are made anew."""

MANIFEST = "export.json"


def export_model(model: str, target: Path, precision: Precision, progress: Callable[[str], None]) -> Path:
    """Make `target` hold the model of that name in that precision and return it; a complete one is left as it is.

    Takes some seconds and a few hundred megabytes of memory; blocks while another process exports to the same place.
    `progress` gets a line for each step. Raises FileNotFoundError without the package, ValueError for other weights
    and for a name that `MODEL_SOURCES` has not.
    """
    source = _source(model)
    if _holds(target, source, precision):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target, progress):
        if not _holds(target, source, precision):
            _publish(_prepare(source, target, precision, progress), target)
    progress(f"{source.name} in {precision} is ready")
    return target


def is_complete(model: str, target: Path, precision: Precision) -> bool:
    """Whether `target` already holds this export: the manifest says what it is, and no file is missing."""
    return _holds(target, _source(model), precision)


def _source(model: str) -> ModelSource:
    if model not in MODEL_SOURCES:
        raise ValueError(f"{model!r} can't be exported, only {' and '.join(MODEL_SOURCES)}")
    return MODEL_SOURCES[model]


def _holds(target: Path, source: ModelSource, precision: Precision) -> bool:
    manifest = target / MANIFEST
    return (
        manifest.is_file()
        and manifest.read_text() == _manifest(source, precision)
        and all((target / name).is_file() for name in (MODEL, *source.tokenizer_files))
    )


def _manifest(source: ModelSource, precision: Precision) -> str:
    described = {
        "format": EXPORT_FORMAT,
        "weights_sha256": source.weights_sha256,
        "precision": precision,
        "max_tokens": source.max_tokens,
    }
    return json.dumps(described, indent=2) + "\n"


@contextmanager
def _alone(target: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock beside `target`. It ends with the process, so a killed one blocks nobody."""
    with (target.parent / f".{target.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another process that exports the same model")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _prepare(source: ModelSource, target: Path, precision: Precision, progress: Callable[[str], None]) -> Path:
    """Write everything into a folder beside `target`, after what a killed process may have left there is gone."""
    partial = target.parent / f".{target.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    progress(f"exporting {source.name} to ONNX")
    source.write(partial)
    if precision == "int8":
        progress("quantising it to int8")
        _quantise(partial / MODEL)
    (partial / MANIFEST).write_text(_manifest(source, precision))
    return partial


def _quantise(file: Path) -> None:
    # Imported here: half a second and fifty megabytes, which nobody needs once the model is there.
    from streams.adapters.export.int8_quantisation import quantise  # noqa: PLC0415

    quantise(file)


def _publish(partial: Path, target: Path) -> None:
    """Move the folder to its name in one step, after its bytes are on the disk."""
    for path in (*partial.iterdir(), partial):
        fsync_path(path)
    if target.exists():  # Of another precision or format, or damaged: it has to go before the rename.
        shutil.rmtree(target)
    partial.rename(target)
    fsync_path(target.parent)
