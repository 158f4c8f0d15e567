"""Ids of items by text, scope, mode and type."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agents.rules.memory.identity import derive_item_id, normalise_text

SCOPE = {"user_id": "u1", "project_id": "p1"}


def id_of(text: str, mode: str = "general", memory_type: str = "semantic", **scope: str) -> str:
    return derive_item_id(SCOPE | scope, mode, memory_type, text)


def test_ids_are_stable_between_releases() -> None:
    assert id_of("The deploy target is fly.io now.") == "6924296d-5992-5186-bb43-ebffd63c8320"


@pytest.mark.parametrize(
    "other",
    [
        "the deploy target is FLY.IO now",
        "  The deploy\ttarget is fly.io now!",
        "\u201cThe deploy target is fly.io now.\u201d",
        "The deploy target \u2013 is fly.io now\u2026",
        "The\u00a0deploy target is \uff46ly.io now.",
    ],
)
def test_case_spaces_and_punctuation_do_not_change_the_id(other: str) -> None:
    assert id_of(other) == id_of("The deploy target is fly.io now.")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It is -5 degrees.", "It is 5 degrees."),
        ("I write C#.", "I write C."),
        ("I write C++.", "I write C."),
        ("Version 1.2", "Version 12"),
        ("I like \U0001f382", "I like \U0001f355"),
        ("...", "?!"),
        ("No smoking", "Smoking"),
    ],
)
def test_different_meanings_have_different_ids(one: str, other: str) -> None:
    assert id_of(one) != id_of(other)


def test_scope_mode_and_type_change_the_id() -> None:
    ids = {id_of("x"), id_of("x", user_id="u2"), id_of("x", "code"), id_of("x", memory_type="procedural")}
    assert len(ids) == 4


def test_apostrophes_are_normalised() -> None:
    assert normalise_text("I don\u2019t") == normalise_text("i don't")


@given(some.text(max_size=60))
def test_normalisation_is_idempotent(text: str) -> None:
    once = normalise_text(text)
    assert once == " ".join(once.split())
    assert normalise_text(once) == once


def test_run_of_punctuation_is_normalised_in_linear_time() -> None:
    assert normalise_text("a" + "." * 32_768 + "b").startswith("a.")
    assert normalise_text("." * 32_768 + "a") == "a"
