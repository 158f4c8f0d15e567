"""Print measurements as a table and as one line of JSON."""

import json
from collections.abc import Callable
from typing import Any


class Report:
    """Collects rows and prints them. Ratios matter most, because machines differ."""

    def __init__(self, write_line: Callable[[str], None]) -> None:
        self._write_line = write_line
        self._rows: list[tuple[str, str, str]] = []
        self._values: dict[str, Any] = {}

    def ratio(self, key: str, name: str, value: float, wanted: str = "") -> None:
        """Add a ratio, with its target."""
        self._values[key] = round(value, 3)
        self._rows.append((name, f"{value:.2f}", wanted))

    def number(self, key: str, name: str, value: float, unit: str, wanted: str = "") -> None:
        """Add a number with its unit, and with its target, which is for the machine of the project's figures."""
        self._values[key] = round(value, 4)
        self._rows.append((name, f"{value:,.1f} {unit}", wanted))

    def cost(self, key: str, name: str, ms: float, whole: float, wanted: str = "") -> None:
        """Add milliseconds of processor time, as a share of `whole` too, with the budget."""
        self._values[key] = round(ms, 3)
        self._rows.append((name, f"{ms:.2f} ms  {ms / whole if whole else 0:4.0%}", wanted))

    def fact(self, key: str, name: str, value: object) -> None:
        """Add any other value."""
        self._values[key] = value
        self._rows.append((name, str(value), ""))

    def section(self, name: str) -> None:
        """Start a section of the table."""
        self._rows.append((f"\n{name}", "", ""))

    def print(self) -> None:
        """Print all rows, then the JSON."""
        width = max(len(name) for name, _, _ in self._rows) + 2
        for name, value, wanted in self._rows:
            self._write_line(f"{name:<{width}}{value:>18}   {wanted}".rstrip())
        self._write_line("")
        self._write_line(json.dumps(self._values))
