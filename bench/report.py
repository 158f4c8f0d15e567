"""What was measured, for people as a table and for programs as one line of JSON."""

import json
from collections.abc import Callable
from typing import Any

Tell = Callable[[str], None]


class Report:
    """Rows of a number with its name and unit; ratios are what counts, as machines differ."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._rows: list[tuple[str, str, str]] = []
        self._found: dict[str, Any] = {}

    def ratio(self, key: str, name: str, value: float, wanted: str = "") -> None:
        """A ratio, and what is wanted of it."""
        self._found[key] = round(value, 3)
        self._rows.append((name, f"{value:.2f}", wanted))

    def number(self, key: str, name: str, value: float, unit: str) -> None:
        """A number with its unit."""
        self._found[key] = round(value, 4)
        self._rows.append((name, f"{value:,.1f} {unit}", ""))

    def fact(self, key: str, name: str, value: object) -> None:
        """Anything else."""
        self._found[key] = value
        self._rows.append((name, str(value), ""))

    def section(self, name: str) -> None:
        """Begin a part of the table."""
        self._rows.append((f"\n{name}", "", ""))

    def print(self) -> None:
        """Tell all rows, then the JSON."""
        width = max(len(name) for name, _, _ in self._rows) + 2
        for name, value, wanted in self._rows:
            # A dash of a section's name has its own line break.
            self._tell(f"{name:<{width}}{value:>18}   {wanted}".rstrip())
        self._tell("")
        self._tell(json.dumps(self._found))
