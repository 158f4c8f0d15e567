"""Exports a model from an installed package to a folder that fastembed loads, with no network and no torch.

Leaves: the folder, with `model.onnx`, the tokenizer's files and a manifest. Guaranteed: the same bytes every time; the
folder is complete or absent, whichever process is killed and however many export at the same moment.
"""

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.quant_utils import add_pre_process_metadata

from streams.adapters.durable_files import fsync_path
from streams.adapters.export.bert_graph import bert_model
from streams.adapters.export.e5 import write_e5
from streams.adapters.export.package_weights import Tensors, read_verified
from streams.adapters.exported_models import (
    E5,
    MANIFEST_FILE,
    MINILM,
    MODEL_FILE,
    Precision,
    exported_model,
    is_complete,
    write_sizes,
)

TOKENIZER_CONFIG = "tokenizer_config.json"

HEADER_LENGTH_BYTES = 8
"""A safetensors file starts with the length of its JSON header, 64 bits little-endian, and then the header."""


def write_minilm(folder: Path) -> None:
    """Write all files, without importing the package, which would need torch.

    Raises FileNotFoundError without the package, ValueError for other weights.
    """
    source = minilm_folder()
    model = bert_model(read_weights(source), json.loads((source / "config.json").read_text()))
    (folder / MODEL_FILE).write_bytes(model.SerializeToString(deterministic=True))
    for name in MINILM.tokenizer_files:
        if name != TOKENIZER_CONFIG:
            shutil.copyfile(source / name, folder / name)
    config = json.loads((source / TOKENIZER_CONFIG).read_text())
    (folder / TOKENIZER_CONFIG).write_text(
        json.dumps({**config, "model_max_length": MINILM.max_tokens}, indent=2) + "\n"
    )


def minilm_folder() -> Path:
    """Return the folder of weights and tokenizer files. Raises FileNotFoundError without the package."""
    return MINILM.weights_path().parent


def read_weights(folder: Path) -> Tensors:
    """Read all float tensors of `model.safetensors`. Raises ValueError where the file isn't the published one."""
    return parse_safetensors(read_verified(folder / "model.safetensors", MINILM.weights_sha256))


def parse_safetensors(content: bytes) -> Tensors:
    """Read the float32 tensors of a safetensors file; tensors of other types are left out.

    Format: https://huggingface.co/docs/safetensors; offsets count from the end of the header.
    """
    data_start = HEADER_LENGTH_BYTES + int.from_bytes(content[:HEADER_LENGTH_BYTES], "little")
    header: dict[str, Any] = json.loads(content[HEADER_LENGTH_BYTES:data_start])
    data = memoryview(content)[data_start:]
    return {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], dtype="<f4").reshape(entry["shape"])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


WRITERS: dict[str, Callable[[Path], None]] = {MINILM.name: write_minilm, E5.name: write_e5}


def export_model(name: str, target: Path, precision: Precision, progress: Callable[[str], None]) -> Path:
    """Make `target` hold the model of that name in that precision and return it; a complete one is left as it is.

    Takes some seconds and a few hundred megabytes of memory; blocks while another process exports to the same place.
    `progress` gets a line for each step. Raises FileNotFoundError without the package, ValueError for other weights
    and for a name that is not in `EXPORTED_MODELS`.
    """
    model = exported_model(name)
    if is_complete(name, target, precision):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _lock(target, progress):
        if not is_complete(name, target, precision):
            # Move the folder to its name in one step, once its bytes are on the disk.
            # Write everything into a folder beside `target`, after removing what a killed process left there.
            partial = target.parent / f".{target.name}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            progress(f"exporting {model.name} to ONNX")
            WRITERS[model.name](partial)
            if precision == "int8":
                progress("quantising it to int8")
                _quantise(partial / MODEL_FILE)
            (partial / MANIFEST_FILE).write_text(model.manifest(precision))
            write_sizes(partial)
            for path in (*partial.iterdir(), partial):
                fsync_path(path)
            if target.exists():  # Of another precision or format, or damaged: it has to go before the rename.
                shutil.rmtree(target)
            partial.rename(target)
            fsync_path(target.parent)
    progress(f"{name} in {precision} is ready")
    return target


@contextmanager
def _lock(target: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock file next to `target`. The system releases it with the process, so a killed process blocks none."""
    with (target.parent / f".{target.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("waiting for another process that exports the same model")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _quantise(file: Path) -> None:
    """Make the weights 8-bit integers: a quarter of the size, about twice as fast on a CPU with VNNI.

    Weights are quantised by channel, with the table of words; activations while the model runs. Signed integers by
    channel: unsigned ones by tensor are slower and lose more. `DefaultTensorType` is for types that can't be inferred.
    """
    model = onnx.load(file)
    add_pre_process_metadata(model)  # Nothing is left to pre-process; without it the root logger gets a warning.
    onnx.save(model, file)
    quantised = file.with_suffix(".int8")
    quantize_dynamic(
        file,
        quantised,
        per_channel=True,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=["MatMul", "Gather"],
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )
    quantised.replace(file)
