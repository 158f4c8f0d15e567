"""Weights that come inside an installed package, which is found but never imported.

Enters: a package's import name, a file's content. Leaves: the package's folder, the content once it is known to be the
right one. Guaranteed: none of the package's code runs.
"""

import hashlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Tensors = Mapping[str, NDArray[np.float32]]
"""Tensors by their published name, such as `encoder.layer.0.output.dense.weight`."""


def package_folder(package: str, model: str) -> Path:
    """Find the folder of the package that carries that model. Raises FileNotFoundError where it isn't installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"the package {package} is not installed; it carries the weights of {model}")
    return Path(spec.submodule_search_locations[0])


def verify_sha256(name: str, content: bytes, sha256: str) -> None:
    """Raise ValueError where the file of that name has another content than the published one."""
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ValueError(f"{name} has sha256 {found}, the published model has {sha256}")
