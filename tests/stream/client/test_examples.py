"""The examples in the docstrings of the client's calls, run over each transport against the in-memory pipeline."""

import ast
import doctest
import inspect
import sys
import types
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from modestream_client import HttpMemoryClient, MemoryCalls

from tests.stream.client.conftest import ClientOf
from tests.worlds.in_memory_pipeline import InMemoryPipeline

AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

DOCSTRINGS = {name: inspect.getdoc(call) or "" for name, call in inspect.getmembers(MemoryCalls, inspect.isfunction)}
EXAMPLES = {name: doctest.DocTestParser().get_examples(text) for name, text in DOCSTRINGS.items() if ">>>" in text}

NO_ROUTE = {"rename_category"}
"""Calls that the gateway has no route for."""


async def run(example: doctest.Example, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run an example, which may await; return what it shows."""
    shown: list[str] = []
    monkeypatch.setattr(sys, "displayhook", lambda value: None if value is None else shown.append(f"{value!r}\n"))
    code = compile(example.source, "<example>", "single", AWAIT)
    outcome = types.FunctionType(code, names)()
    if inspect.iscoroutine(outcome):
        await outcome
    return "".join(shown)


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    """A pipeline that logs contexts, which some examples look at."""
    async with InMemoryPipeline(tmp_path, more_settings={"context_log": "ids"}).running() as running:
        yield running


def test_most_calls_have_an_example() -> None:
    public = [name for name in DOCSTRINGS if not name.startswith("_")]
    assert len(EXAMPLES) > 0.7 * len(public)


async def test_every_example_shows_what_it_says(client_as: ClientOf, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, examples in EXAMPLES.items():
        memory = client_as(name)
        if name in NO_ROUTE and isinstance(memory, HttpMemoryClient):
            with pytest.raises(ValueError, match="no route"):
                await memory.rename_category("a", "b")
            continue
        names: dict[str, Any] = {"memory": memory}
        for example in examples:
            shown = await run(example, names, monkeypatch)
            assert shown == example.want, f"{name}: {example.source}"
