"""Count how finely the code is cut, by package; `make check` compares the totals with `LIMITS`.

Code is the lines without docstrings (those of constants and fields too), imports, comments and blank lines. A module is
a file other than `__init__.py`. A private function is used once if its file names it once besides its definition. A
small module has at most `SMALL_LINES` lines and is imported by one file of the product. A tuple assert compares several
facts at once: `assert (a, b) == (1, 2)`.

The exit status is 1 if a total is on the wrong side of its limit.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from checks import PRODUCT

SMALL_LINES = 50
PRAGMAS = ("# noqa", "# type:", "# fmt:")
"""Comments for tools, which are not counted."""


@dataclass(frozen=True)
class Grain:
    """Counts of one file, or sums of them."""

    lines: int = 0
    code: int = 0
    imports: int = 0
    comments: int = 0
    modules: int = 0
    functions: int = 0
    used_once: int = 0
    small_modules: int = 0
    ones: int = 0
    tuple_asserts: int = 0

    def __add__(self, other: "Grain") -> "Grain":
        """Return the sums."""
        return Grain(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def figures(self) -> dict[str, float]:
        """Return what the report shows, by its heading."""
        return {
            "lines": self.lines,
            "modules": self.modules,
            "functions/100": round(100 * self.functions / max(1, self.code), 1),
            "imports %": round(100 * self.imports / max(1, self.lines), 1),
            COMMENTS: round(100 * self.comments / max(1, self.lines), 2),
            "used once": self.used_once,
            "small": self.small_modules,
            "one": self.ones,
            "tuple asserts": self.tuple_asserts,
        }


COMMENTS = "comments %"
"""The figure that is to rise."""

LIMITS: dict[str, dict[str, float]] = {
    "product": {
        "lines": 98_780, "modules": 476, "functions/100": 11.1, "imports %": 7.4, COMMENTS: 1.22, "used once": 826,
        "small": 3, "one": 0,
    },
    "tests": {"lines": 95_780, "one": 0, "tuple asserts": 0},
}  # fmt: skip
"""The least comments, and the most of all else: today's totals, to be moved towards the aims with the code."""

AIMS: dict[str, dict[str, float]] = {
    "product": {
        "lines": 64_000, "modules": 480, "functions/100": 8, "imports %": 6, COMMENTS: 2, "used once": 500, "one": 0,
    },
    "tests": {"lines": 58_000, "one": 0, "tuple asserts": 0},
}  # fmt: skip


def measure(source: str) -> Grain:
    """Count one file; whether it is a module, and a small one, is not seen in its text."""
    lines, tree = source.splitlines(), ast.parse(source)
    comments = _comment_lines(source)
    nodes = list(ast.walk(tree))
    docstrings = _lines_of(node for node in nodes if _is_docstring(node))
    imports = _lines_of(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    rest = {number for number, line in enumerate(lines, 1) if not line.strip() or line.lstrip().startswith("#")}
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    named = Counter(name for node in nodes for name in _names(node))
    return Grain(
        lines=len(lines),
        code=len(lines) - len(docstrings | imports | rest),
        imports=len(imports),
        comments=len(comments),
        functions=len(functions),
        used_once=sum(_is_private(node.name) and named[node.name] == 1 for node in functions),
        ones=sum(_binds_one(node) for node in nodes),
        tuple_asserts=sum(_is_tuple_assert(node) for node in nodes),
    )


def measure_packages(root: Path) -> dict[str, Grain]:
    """Count the tests, and the product by its packages and their folders."""
    paths = [path for folder in (*PRODUCT, "tests") for path in sorted((root / folder).rglob("*.py"))]
    sources = {path.relative_to(root): path.read_text() for path in paths}
    importers = Counter(name for path, text in sources.items() if path.parts[0] != "tests" for name in _imported(text))
    packages: dict[str, Grain] = {}
    for path, source in sources.items():
        is_module = path.name != "__init__.py"
        name = ".".join(path.with_suffix("").parts).removeprefix("client.")
        is_small = is_module and len(source.splitlines()) <= SMALL_LINES and importers[name] == 1
        package = path.parts[0] if path.parts[0] == "tests" else "/".join(path.parts[:-1][:2])
        counted = measure(source) + Grain(modules=is_module, small_modules=is_small)
        packages[package] = packages.get(package, Grain()) + counted
    return packages


def totals(packages: dict[str, Grain]) -> dict[str, dict[str, float]]:
    """Return the figures of the product and of its tests."""
    product = sum((grain for package, grain in packages.items() if package != "tests"), Grain())
    return {"product": product.figures(), "tests": packages.get("tests", Grain()).figures()}


def exceeded(measured: dict[str, dict[str, float]]) -> list[str]:
    """Return a line for each total on the wrong side of its limit."""
    return [
        f"{part}: {what} {measured[part][what]:g}, and the limit is {limit:g}"
        for part, limits in LIMITS.items()
        for what, limit in limits.items()
        if (measured[part][what] < limit if what == COMMENTS else measured[part][what] > limit)
    ]


def main() -> int:
    """Print the figures; return the exit status."""
    packages = measure_packages(Path(__file__).parents[1])
    measured = totals(packages)
    print(f"{'':24}", *(f"{what:>13}" for what in Grain().figures()))  # noqa: T201
    shown = {name: grain.figures() for name, grain in packages.items()} | measured
    limits = {f"{part}, {kind}": table[part] for part in LIMITS for kind, table in (("limit", LIMITS), ("aim", AIMS))}
    for name, figures in (shown | limits).items():
        print(f"{name:24}", *(f"{figures[what]:13g}" if what in figures else " " * 13 for what in Grain().figures()))  # noqa: T201
    problems = exceeded(measured)
    print(*problems, sep="\n")  # noqa: T201
    return 1 if problems else 0


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _lines_of(nodes: Iterable[ast.AST]) -> set[int]:
    return {line for node in nodes for line in range(node.lineno, node.end_lineno + 1)}  # type: ignore[attr-defined]


def _comment_lines(source: str) -> set[int]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0] for token in tokens if token.type == tokenize.COMMENT and not token.string.startswith(PRAGMAS)
    }


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the name that an expression refers to."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _binds_one(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == "one") or (
        isinstance(node, ast.arg) and node.arg == "one"
    )


def _is_tuple_assert(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare) and isinstance(node.test.left, ast.Tuple)


def _imported(source: str) -> set[str]:
    """Return the dotted names that a file imports: of modules, and of what may be a module."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


if __name__ == "__main__":
    sys.exit(main())
