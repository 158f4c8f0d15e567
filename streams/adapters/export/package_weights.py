"""Weights from the files of an installed package, which is found but never imported."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Tensors = Mapping[str, NDArray[np.float32]]
"""Tensors by their published name, such as `encoder.layer.0.output.dense.weight`."""


def read_verified(file: Path, sha256: str) -> bytes:
    """Read a file. Raises ValueError where its content is not the published one."""
    content = file.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ValueError(f"{file.name} has sha256 {found}, the published model has {sha256}")
    return content
