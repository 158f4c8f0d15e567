"""Tables of interaction modes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.rules.cues.mode_taxonomy import ModeTaxonomy

TEXT = (Path(__file__).parents[2] / "agents" / "data" / "mode_taxonomy.json").read_text()
SHIPPED = ModeTaxonomy.loads(TEXT)
"""The tables of the project."""


def changed(values: Mapping[str, Any]) -> str:
    """Return the project's file with other values at these paths, each of keys joined by dots; None removes one."""
    tables = json.loads(TEXT)
    for path, value in values.items():
        *parents, last = path.split(".")
        place = tables
        for key in parents:
            place = place[key]
        place.pop(last) if value is None else place.update({last: value})
    return json.dumps(tables)
