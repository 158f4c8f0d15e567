"""Embedders of every kind, made with prefixes: the fake, tiny models and the real small one; here and in processes."""

from collections.abc import Callable
from typing import Protocol

import pytest

from agents.ports.models import Embedder
from streams.adapters.embedding.catalog.presets import GENERAL_PRESET
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.process.process_embedder import ProcessEmbedder
from tests.builders.exported_models import exported_minilm
from tests.builders.tiny_models import write_tiny_model
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.in_process_embedder import InProcessEmbedder

WORDS = ("the", "red", "house", "cat", "sat", "on", "mat", "deploy", "target", "query", "passage")


class Closable(Embedder, Protocol):
    async def close(self) -> None: ...


class Make(Protocol):
    """Returns an embedder with these prefixes, shared or newly loaded."""

    def __call__(self, *, query_prefix: str = "", passage_prefix: str = "", anew: bool = False) -> Embedder: ...


def fake(_: pytest.TempPathFactory) -> Callable[[str, str], Closable]:
    return lambda query, passage: FakeEmbedder(dim=48, query_prefix=query, passage_prefix=passage)


def tiny_mean(temporary: pytest.TempPathFactory) -> Callable[[str, str], Closable]:
    """Return what loads a tiny model that is pooled by the mean."""
    folder = write_tiny_model(temporary.mktemp("tiny"), 32, words=WORDS)
    return lambda query, passage: load(LocalModel("tiny", folder, 32, "fp32", "mean", True, None, query, passage))


def tiny_cls(temporary: pytest.TempPathFactory) -> Callable[[str, str], Closable]:
    """Return what loads a tiny model that is pooled by its first token."""
    folder = write_tiny_model(temporary.mktemp("tiny"), 40, words=WORDS)
    return lambda query, passage: load(LocalModel("tiny", folder, 40, "fp32", "cls", True, None, query, passage))


def minilm_int8(temporary: pytest.TempPathFactory) -> Callable[[str, str], Closable]:
    """Return what loads the real small model."""
    folder = exported_minilm("int8", temporary)
    return lambda query, passage: load(
        LocalModel("general", folder, 384, "int8", "mean", True, None, query, passage, learned=GENERAL_PRESET.learned)
    )


def load(local: LocalModel) -> InProcessEmbedder:
    return InProcessEmbedder.load(local, threads_at_once=2)


def in_a_process(temporary: pytest.TempPathFactory) -> Callable[[str, str], Closable]:
    """Return what loads a tiny model in a process of its own."""
    folder = write_tiny_model(temporary.mktemp("tiny"), 32, words=WORDS)
    return lambda query, passage: ProcessEmbedder.start(
        LocalModel("tiny", folder, 32, "fp32", "mean", True, None, query, passage), folder / "run", 2
    )


KINDS = (fake, tiny_mean, tiny_cls, minilm_int8, in_a_process)
