"""A cross-encoder's files as if an installed package had them."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from streams.adapters.exported_models import ExportedModel


@dataclass(frozen=True, slots=True)
class PackagedFolder(ExportedModel):
    folder: Path = Path()

    def weights_path(self) -> Path:
        return self.folder / self.weights


def packaged(folder: Path) -> PackagedFolder:
    """Return the published model whose files are those that the folder has now."""
    digest = hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()
    return PackagedFolder("tiny-pairs", "none", "model.onnx", digest, 64, (), folder=folder)
