"""Turns that are distilled together: of one speaker, and without those that must stay verbatim."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from agents.rules.consolidation.candidates import cluster_turns, is_in_run, list_distillable_turns
from agents.rules.consolidation.distillation import source_of
from agents.rules.index.lexical_document import LexicalDocument
from schemas.models.vectors import Matrix
from schemas.state.memories import Memory, Resource
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.memories import made

HERE = 0
SCOPE = {"user_id": "ana", "project_id": "default"}


@pytest.fixture
def words(tmp_path: Path) -> Iterator[SqliteLexicalIndex]:
    index = SqliteLexicalIndex(tmp_path)
    index.open(HERE)
    yield index
    index.close()


def distillable_texts(words: SqliteLexicalIndex, *memories: Memory) -> list[str]:
    """The texts of the distillable turns."""
    for memory in memories:
        words.put(HERE, LexicalDocument(memory))
    text_of = {memory.memory_id: memory.text for memory in memories}
    return [text_of[one] for one in list_distillable_turns(words.memory_columns(HERE, "ana"), SCOPE, "general")]


def test_distillable_turns_are_of_scope_and_mode_oldest_first(words: SqliteLexicalIndex) -> None:
    there = distillable_texts(
        words,
        made("The second walk.", 2),
        made("The first walk.", 1),
        made("In another mode.", 3, mode="code"),
        made("In another project.", 4, project="p2"),
        made("Distilled.", 5, type="semantic", origin="distilled"),
        made("Superseded.", 6, superseded_by="x"),
    )
    assert there == ["The first walk.", "The second walk.", "Superseded."]


@pytest.mark.parametrize(
    "text",
    [
        "Thanks!",
        "You must never push to main.",
        "No, I meant the other server.",
        "The build fails with an error: exit code 1.",
    ],
)
def test_turns_that_must_stay_verbatim_are_excluded(words: SqliteLexicalIndex, text: str) -> None:
    assert distillable_texts(words, made(text), made("The river is high.", 1)) == ["The river is high."]


def test_run_takes_earlier_turns_not_superseded_by_others() -> None:
    turn = made("The river is high.", 5)
    assert is_in_run(turn, "0-1", until=6)
    assert not is_in_run(turn, "0-1", until=5)
    gone = turn.model_copy(update={"superseded_by": "d", "superseded_in": "0-1"})
    assert is_in_run(gone, "0-1", until=6)
    assert not is_in_run(gone, "0-2", until=6)
    assert not is_in_run(turn.model_copy(update={"resources": (Resource(uri="s3://b/a.png"),)}), "0-1", until=6)


def near(count: int) -> Matrix:
    return np.ones((count, 8), np.float32) + 0.01 * np.eye(count, 8, dtype=np.float32)


def test_turns_of_two_speakers_are_not_clustered() -> None:
    said = [source_of(made("The river is high today.", n, speaker=("Ana", "Ben")[n % 2])) for n in range(6)]
    found = cluster_turns(said, near(6))
    assert sorted({source.voice for source in one.sources} == {one.sources[0].voice} for one in found) == [True, True]
    assert [len(one.sources) for one in found] == [3, 3]
    assert all(0.99 < one.mean_cosine <= 1 for one in found)


COURTESIES = {
    "encouragement": [
        "Thanks, I'm really grateful for your help with staying motivated.",
        "Thanks! Your help keeps me motivated, I'm really grateful.",
        "I'm grateful for your help, it really keeps me motivated!",
    ],
    "greetings": [
        "Hey there! Long time no see, it's good to hear from you.",
        "Long time no see! Good to hear from you, what happened?",
        "Hello, long time no see, so good to hear from you!",
    ],
    "German": [
        "Danke, deine Unterstützung motiviert mich wirklich, das freut mich!",
        "Danke dir! Deine Unterstützung freut mich und motiviert mich.",
        "Das freut mich wirklich, danke, deine Unterstützung motiviert mich!",
    ],
    "Spanish": [
        "Gracias por tu apoyo, me alegra mucho y me motiva a seguir.",
        "¡Muchas gracias por el apoyo! Me motiva y me alegra.",
        "Tu apoyo me motiva mucho, gracias, me alegra de corazón.",
    ],
    "French": [
        "Merci pour ton soutien, ça m'encourage et me motive beaucoup.",
        "Ton soutien me motive, merci, ça m'encourage vraiment !",
        "Merci beaucoup, ton soutien m'encourage et me motive toujours.",
    ],
}


def cluster_sizes(texts: list[str]) -> list[int]:
    """The cluster sizes of turns with nearly equal vectors."""
    return [
        len(one.sources) for one in cluster_turns([source_of(made(text, n)) for n, text in enumerate(texts)], near(3))
    ]


@pytest.mark.parametrize("texts", COURTESIES.values(), ids=COURTESIES)
def test_courtesies_are_not_clustered(texts: list[str]) -> None:
    assert cluster_sizes(texts) == []


@pytest.mark.parametrize(
    "what", ["Thanks for your help with the leaking radiator {}", "Chapter {} tells of the lantern"]
)
def test_courtesies_around_content_do_not_prevent_clusters(what: str) -> None:
    assert cluster_sizes([what.format(end) for end in ("a1", "a2", "b1")]) == [3]
