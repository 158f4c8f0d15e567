"""Memories in modes with different embedders."""

from typing import Any

from schemas.messages.retrieval import RetrieveResult
from schemas.state.memories import Memory
from schemas.state.modes import Mode
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.memories import made
from tests.harnesses.retrieval import RetrievalHarness

CODE = [
    "The parser leaks memory on nested brackets.",
    "The deploy target is fly.io.",
    "Renamed the tokenizer module.",
    "The linter complains about line length.",
]
JOURNAL = ["Felt tired after the long walk.", "The kitchen tap leaks again.", "Dreamt of deploying sails on a boat."]


def mode(name: str, embedder: str, project: str | None = None) -> Mode:
    return Mode(name=name, embedder=embedder, embedding_dim=32, project=project)


def library_of_modes(words: SqliteLexicalIndex) -> RetrievalHarness:
    """Declare `code` and `journal` with embedders of different dimensions."""
    library = RetrievalHarness(words)
    library.modes.declare(mode("code", "tiny32"), mode("journal", "tiny48"))
    return library


def turns(mode: str, texts: list[str], start: int = 0, **fields: Any) -> list[Memory]:
    """Return turns of one conversation in a mode, numbered from `start`."""
    fields = {"conversation_id": f"c-{mode}"} | fields
    return [made(text, start + number, mode=mode, **fields) for number, text in enumerate(texts)]


async def filled(library: RetrievalHarness) -> None:
    """Store turns in both modes."""
    await library.remember(*turns("code", CODE), *turns("journal", JOURNAL, 10))


def found(result: RetrieveResult) -> set[str]:
    return {hit.mode for hit in result.hits}
