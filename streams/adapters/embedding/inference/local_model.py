"""A model on the local disk: its description, the arrays learned from its vectors, and its files.

Missing files are exported; others are fetched before (`catalog/fetching.py`). Guaranteed: a folder that has the files
is used as it is; an error says which files to put where. The model itself is not loaded here.
"""

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from schemas.failures import ModelMissing
from schemas.models.vectors import Matrix
from schemas.state.modes import Pooling
from streams.adapters.exported_models import Precision, is_complete

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
"""Required next to the model; `config.json` and `special_tokens_map.json` are optional."""

LEARNED_MAGIC = b"modestream token projection 1\n"
"""The first line of the file; a new format gets a new number."""

HASH_DIGITS = 8
"""Digits of the file's SHA-256 in a name: enough for the few files of a store."""


@dataclass(frozen=True, slots=True)
class LearnedArrays:
    """The arrays of a file. `kind` is the learning method, `digest` identifies the file."""

    kind: str
    digest: str
    arrays: Mapping[str, Matrix]


def read_learned(path: Path) -> LearnedArrays:
    """Read a file. Raises OSError if it is missing, ValueError if it has another format or is truncated.

    `python -m training.projection` writes it: `LEARNED_MAGIC`, one line of JSON (`kind`; `arrays`, each with its `name`
    and `shape`), then the arrays' numbers, little-endian float32, row by row.
    """
    content = path.read_bytes()
    line, _, rest = content.removeprefix(LEARNED_MAGIC).partition(b"\n")
    if not content.startswith(LEARNED_MAGIC) or len(rest) % 4:
        raise ValueError(f"{path} is not a token projection of this version")
    header: dict[str, Any] = orjson.loads(line)
    numbers = np.frombuffer(rest, "<f4").astype(np.float32)
    digest = hashlib.sha256(content).hexdigest()[:HASH_DIGITS]
    arrays, start = {}, 0
    for array in header["arrays"]:
        rows, columns = array["shape"]
        # `reshape` raises ValueError if the file has too few numbers.
        arrays[array["name"]] = numbers[start : start + rows * columns].reshape(rows, columns)
        start += rows * columns
    return LearnedArrays(header["kind"], digest, arrays)


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A folder with an ONNX model and its tokenizer, and how to read its output.

    `max_tokens` can only lower the limit of the folder's tokenizer. The model's first output is either token states,
    which are pooled to one vector, or one vector for a text; then there are no token vectors. `learned` names the file
    of learned arrays next to this module; empty without one. `scores_pairs`: it is a cross-encoder, whose first output
    is one number for a pair of a question, in place of the prefix, and a text. `fastembed_id`: fastembed runs and pools
    the model of this name; empty: this package does. `companions` are further files without which nothing runs.
    """

    name: str
    directory: Path
    dim: int
    precision: str
    pooling: Pooling = "mean"
    normalize: bool = True
    max_tokens: int | None = None
    query_prefix: str = ""
    passage_prefix: str = ""
    model_file: str = "model.onnx"
    learned: str = ""
    scores_pairs: bool = False
    fastembed_id: str = ""
    companions: tuple[str, ...] = TOKENIZER_FILES

    def learned_arrays(self) -> LearnedArrays | None:
        """Return the arrays learned from this model's vectors; None without any."""
        return _learned(self.learned) if self.learned else None


@cache
def _learned(name: str) -> LearnedArrays:
    return read_learned(Path(__file__).with_name(name))


EXPORT_COMMAND = (sys.executable, "-m", "streams.adapters.export", "--exit-with-parent")


def ensure_exported(local: LocalModel, precision: Precision) -> None:
    """Run the exporter if the model's folder lacks the complete export. Its memory is freed with its process.

    Blocks for a few seconds; each step is a line of JSON on standard output. Raises ModelMissing, with the reason.
    """
    if is_complete(local.name, local.directory, precision):
        return
    command = (*EXPORT_COMMAND, local.name, str(local.directory), precision)
    export = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)  # noqa: S603
    sys.stderr.write(export.stderr)
    if export.returncode:
        code = f"the exporter ended with code {export.returncode}"
        # Python's own status after an exception; a killed exporter has no reason on its last line.
        reason = [code, *export.stderr.strip().splitlines()][-1] if export.returncode == 1 else code
        raise ModelMissing(f"{local.name} could not be exported: {reason}")


def fetched_folder(local: LocalModel, hub: str) -> Path:
    """Return the folder of the fetched files of a repository: apart from the folder that a person fills."""
    return local.directory.parent / "fetched" / hub.replace("/", "--")


def ensure_model_folder(local: LocalModel, hub: str | None) -> Path:
    """Return the folder with the model's files: its own, or that of a fetch from the repository `hub`.

    Raises FileNotFoundError, which names the missing file and the remedy.
    """
    folders = [local.directory]
    if hub is not None:
        # Releases before had downloads in the cache of Hugging Face's client.
        cache = local.directory.parent / f"models--{hub.replace('/', '--')}"
        head = cache / "refs" / "main"
        snapshots = [cache / "snapshots" / head.read_text()] if head.is_file() else []
        folders += [fetched_folder(local, hub), *snapshots]
    for folder in folders:
        if not missing_files(replace(local, directory=folder)):
            return folder
    missing = ", ".join(missing_files(local))
    raise FileNotFoundError(f"{missing} not found: put the model's files into {local.directory}")


def missing_files(local: LocalModel) -> list[str]:
    return [name for name in (local.model_file, *local.companions) if not (local.directory / name).is_file()]


TOKENIZING_FILES = ("tokenizer.json", "special_tokens_map.json")
"""Files that determine a text's tokens. The token limit, in `tokenizer_config.json`, is in the fingerprint itself."""

WEIGHTS_SUFFIXES = ("_data", ".data")
"""Suffix that ONNX's exporters add to the model's file name for external weights; a number may follow."""

COMPANIONS_DIGITS = 12
"""Hexadecimal digits of the digest, as of a vector space."""


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def companions_digest(local: LocalModel) -> str:
    """Return the digest of the files besides the ONNX file that determine the vectors: tokenizer, external weights.

    Large models keep weights next to the graph, in files named after it (`model.onnx_data`, `model.onnx.data`). Raises
    OSError.
    """
    model = local.directory / local.model_file
    tokenizing = [path for name in TOKENIZING_FILES if (path := local.directory / name).is_file()]
    # Exclude other formats and descriptions of the model in the same folder.
    with_weights = tuple(f"{model.name}{suffix}" for suffix in WEIGHTS_SUFFIXES)
    beside = [path for path in sorted(model.parent.iterdir()) if path.name.startswith(with_weights) and path.is_file()]
    total = hashlib.sha256()
    for path in (*tokenizing, *beside):
        total.update(f"{path.name}\n{file_digest(path)}\n".encode())
    return total.hexdigest()[:COMPANIONS_DIGITS]
