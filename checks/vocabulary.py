"""Find retired words in all sources, or in the given paths; `make check` runs it. Exit status 1 if there are any.

Prose (docstrings, comments, documents) names components as "it" or by name, never as persons, and in `CLEAN` paths has
no retired phrase. Identifiers use the field's vocabulary: a retired name is reported with its replacement.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from checks import PRODUCT

ROOTS = (*PRODUCT, "bench", "training", "checks", "tests", "docs", "README.md", "CONTRIBUTING.md")
"""The paths that are checked without arguments."""

QUOTED = Path("docs/contexts.md")
"""Generated contexts, made of quoted conversations: not checked."""

PERSONS = re.compile(r"\b(who|whom|whoever|nobody|everybody|somebody|anybody|he|him|his|himself)\b", re.IGNORECASE)
"""Words for persons. Components are not persons; people are users, speakers, senders, callers or operators."""

PHRASES = re.compile(
    r"\b((?:is|are|was|were) none|[Aa]new|[Aa]t a stretch|of (?:its|their) own|[Bb]eside|[Ss]ome (?=\d)|for want of"
    r"|(?:Return|Yield|Print|Count) what)\b"
)
"""Phrases that need a second reading, retired from the paths of `CLEAN`."""

LINK = re.compile(r"`[^`]*`|\]\([^)]*\)")
"""Names in back quotes and targets of links: not prose."""

CLEAN = {
    *map(Path, ("README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/capacity.md", "docs/concepts.md")),
    *map(
        Path,
        (
            "docs/gateway.md",
            "docs/production.md",
            "docs/operations.md",
            "docs/configuration.md",
            "docs/recovery.md",
            "docs/reference.md",
        ),
    ),
    *map(Path, ("docs/runbook.md", "docs/semantics.md", "operations", "streams/bootstrap", "streams/observability")),
    *map(Path, ("streams/partition", "streams/runtime", "streams/up", "streams/wire", "streams/adapters/embedding")),
    *map(Path, ("streams/adapters/kafka", "streams/adapters/lexical", "client/modestream_client")),
    *map(Path, ("gateway/backend", "gateway/http", "gateway/keys", "gateway/mcp", "gateway/mem0", "gateway/openai")),
    *map(Path, ("gateway/service", "schemas", "agents/rules/access", "agents/rules/answer", "agents/rules/categories")),
    *(Path("agents/rules", folder) for folder in ("clustering", "consolidation", "context", "cues", "index", "items")),
    *(Path("agents/rules", folder) for folder in ("memory", "maps", "modes", "prompts", "query", "ranking", "text")),
}
"""Paths without retired phrases. A path is added when it is clean, so that it stays so."""

RETIRED = {
    "Surroundings": "WorkerContext",
    "Beside": "BackgroundHooks",
    "Requested": "RequestStep",
    "Roster": "MemoryColumns",
    "NOBODY": "MISSING",
    "Clues": "QueryFeatures",
    "WordClues": "LexicalFeatures",
    "WordIndex": "LexicalIndex",
    "Sight": "VisibleSet",
    "Sought": "TermCoverage",
    "HeadName": "ModelVariant",
    "Unseen": "VectorlessRows",
    "Lane": "ModeSearch",
    "Govern": "HandleCommands",
    "Governed": "CommandResult",
    "Evolve": "Deduplicate",
    "Evolved": "ItemsMerged",
    "Filling": "ContextPacker",
    "Offers": "SectionCandidates",
    "Keeping": "RetentionPolicy",
    "PatientConsumer": "SafeAssignmentConsumer",
    "AskableThread": "ShortPollThread",
    "PromptWorker": "FastStartWorker",
    "UNSPEAKABLE": "UNEMBEDDABLE",
    "KIND_WORDS": "COURTESY_WORDS",
    "FIRM": "ASSERTIVE",
    "Standing": "WorkerStatus",
    "unwritten": "pending_writes",
}
"""Retired identifiers and their replacements."""


def main(paths: list[str]) -> int:
    """Print every problem as `file:line: problem`; return the exit status."""
    problems = [problem for path in _files(paths or list(ROOTS)) for problem in _check(path)]
    for problem in problems:
        print(problem)  # noqa: T201 - it is a command
    return 1 if problems else 0


def _files(paths: list[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        found = path.rglob("*") if path.is_dir() else [path]
        yield from sorted(
            one
            for one in found
            if one.suffix == ".py" or (one.suffix == ".md" and one != QUOTED and "prompts" not in one.parts)
        )


def _check(path: Path) -> Iterator[str]:
    text = path.read_text()
    prose = _prose(text) if path.suffix == ".py" else enumerate(text.splitlines(), 1)
    if path != Path(__file__).relative_to(Path.cwd()):
        is_clean = not CLEAN.isdisjoint((path, *path.parents))
        for line, sentence in prose:
            yield from (f"{path}:{line}: {word!r} is for persons" for word in PERSONS.findall(sentence))
            phrases = PHRASES.findall(LINK.sub("", sentence)) if is_clean else []
            yield from (f"{path}:{line}: {phrase!r} is retired" for phrase in phrases)
    if path.suffix == ".py":
        names = (one for one in tokenize.generate_tokens(io.StringIO(text).readline) if one.type == tokenize.NAME)
        yield from (
            f"{path}:{one.start[0]}: {one.string} is {RETIRED[one.string]} now"
            for one in names
            if one.string in RETIRED
        )


def _prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield comments and docstrings, those of constants and fields included, by line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            # Names and examples in back quotes or quotation marks are not prose.
            prose = re.sub(r"`[^`]*`|\"[^\"]*\"|“[^”]*”", "", node.value.value)
            yield node.lineno, prose


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
