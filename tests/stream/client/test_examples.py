"""The examples in the docstrings of the client's calls, run one after another against the in-memory pipeline."""

import ast
import contextlib
import doctest
import inspect
import io
import sys
import types
from typing import Any

import pytest
from modestream_client import MemoryCalls

from tests.worlds.in_memory_client import client_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline

AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

DOCSTRINGS = {name: inspect.getdoc(call) or "" for name, call in inspect.getmembers(MemoryCalls, inspect.isfunction)}
EXAMPLES = {name: doctest.DocTestParser().get_examples(text) for name, text in DOCSTRINGS.items() if ">>>" in text}


async def run(example: doctest.Example, names: dict[str, Any]) -> str:
    """Run an example, which may await; return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = compile(example.source, "<example>", "single", AWAIT)
        outcome = types.FunctionType(code, names)()
        if inspect.iscoroutine(outcome):
            await outcome
    return printed.getvalue()


def test_most_calls_have_an_example() -> None:
    public = [name for name in DOCSTRINGS if not name.startswith("_")]
    assert len(EXAMPLES) > 0.7 * len(public)


UNSERVED = ("iter_memories", "list_conversations", "list_memories", "list_projects", "map")
"""Examples of requests that the worker does not serve yet."""


def _marked(name: str) -> object:
    return pytest.param(name, marks=pytest.mark.xfail(reason="unknown_schema")) if name in UNSERVED else name


@pytest.mark.parametrize("name", [_marked(name) for name in EXAMPLES])
async def test_example_prints_what_it_says(
    pipeline: InMemoryPipeline, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "displayhook", sys.__displayhook__)
    names: dict[str, Any] = {"memory": client_of(pipeline, user_id=name)}
    for example in EXAMPLES[name]:
        printed = await run(example, names)
        assert doctest.OutputChecker().check_output(example.want, printed, 0), f"{example.source}printed {printed}"
