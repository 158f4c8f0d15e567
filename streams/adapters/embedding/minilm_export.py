"""Exports all-MiniLM-L6-v2 to a folder that fastembed loads, with no network and no torch.

Enters: a target folder and a precision. Leaves: the folder, with `model.onnx`, the tokenizer's files and a manifest.
Guaranteed: the same bytes every time; the folder is there complete or not at all, whatever is killed when, and
whoever else exports at the same moment.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from streams.adapters.embedding.minilm_weights import WEIGHTS_SHA256, model_folder, read_config, read_weights

Precision = Literal["int8", "fp32"]

MAX_TOKENS = 256
"""Where the published model cuts a text (its `sentence_bert_config.json`); the package's tokenizer says 512."""

FORMAT = 1
"""Counts up when an export comes out with other bytes, so that older folders are made anew."""

MANIFEST = "export.json"
MODEL = "model.onnx"
COPIED = ("config.json", "tokenizer.json", "special_tokens_map.json")
TOKENIZER_CONFIG = "tokenizer_config.json"


def export(target: Path, precision: Precision, progress: Callable[[str], None]) -> Path:
    """Make `target` hold the model in that precision and return it; a complete one is left as it is.

    Takes some seconds and a few hundred megabytes of memory; blocks while another process exports to the same place.
    `progress` gets a line for each step. Raises FileNotFoundError without the package, ValueError for other weights.
    """
    if is_complete(target, precision):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target, progress):
        if not is_complete(target, precision):
            _publish(_prepare(target, precision, progress), target)
    progress(f"all-MiniLM-L6-v2 in {precision} is ready")
    return target


def is_complete(target: Path, precision: Precision) -> bool:
    """Whether `target` already holds this export: the manifest says what it is, and no file is missing."""
    manifest = target / MANIFEST
    names = (MODEL, TOKENIZER_CONFIG, *COPIED)
    return (
        manifest.is_file()
        and manifest.read_text() == _manifest(precision)
        and all((target / name).is_file() for name in names)
    )


def _manifest(precision: Precision) -> str:
    described = {"format": FORMAT, "weights_sha256": WEIGHTS_SHA256, "precision": precision, "max_tokens": MAX_TOKENS}
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


def _prepare(target: Path, precision: Precision, progress: Callable[[str], None]) -> Path:
    """Write everything into a folder beside `target`, after what a killed process may have left there is gone."""
    partial = target.parent / f".{target.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    source = model_folder()
    progress("exporting all-MiniLM-L6-v2 to ONNX")
    _write_model(source, partial / MODEL)
    if precision == "int8":
        progress("quantising it to int8")
        _quantise(partial / MODEL)
    _write_tokenizer(source, partial)
    (partial / MANIFEST).write_text(_manifest(precision))
    return partial


def _write_model(source: Path, file: Path) -> None:
    # Imported here: half a second and fifty megabytes, which nobody needs once the model is there.
    from streams.adapters.embedding.bert_graph import bert_model  # noqa: PLC0415

    file.write_bytes(bert_model(read_weights(source), read_config(source)).SerializeToString(deterministic=True))


def _quantise(file: Path) -> None:
    # Imported here, as above.
    from streams.adapters.embedding.int8_quantisation import quantise  # noqa: PLC0415

    quantise(file)


def _write_tokenizer(source: Path, folder: Path) -> None:
    for name in COPIED:
        shutil.copyfile(source / name, folder / name)
    config = json.loads((source / TOKENIZER_CONFIG).read_text())
    (folder / TOKENIZER_CONFIG).write_text(json.dumps({**config, "model_max_length": MAX_TOKENS}, indent=2) + "\n")


def _publish(partial: Path, target: Path) -> None:
    """Move the folder to its name in one step, after its bytes are on the disk."""
    for path in (*partial.iterdir(), partial):
        _sync(path)
    if target.exists():  # Of another precision or format, or damaged: it has to go before the rename.
        shutil.rmtree(target)
    partial.rename(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
