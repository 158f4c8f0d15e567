"""Intent of a text, and mode of an intent."""

import time

import pytest
from modestream_client.vocabulary import InteractionMode

from agents.rules.cues.intents import intent_of
from tests.builders.taxonomies import SHIPPED


@pytest.mark.parametrize(
    ("intent", "mode"),
    [
        ("task", "TASK"),
        ("debug", "DEBUGGING"),
        ("explore", "EXPLORATION"),
        ("learn", "LEARNING"),
        ("general", "GENERAL"),
        ("implement", "TASK"),
        ("fix", "DEBUGGING"),
        ("error", "DEBUGGING"),
        ("investigate", "EXPLORATION"),
        ("explain", "LEARNING"),
        ("teach", "LEARNING"),
        ("", "GENERAL"),
        ("default", "GENERAL"),
        ("unknown", "GENERAL"),
        (None, "GENERAL"),
        (" Debug ", "DEBUGGING"),
    ],
)
def test_mode_of_each_intent(intent: str | None, mode: InteractionMode) -> None:
    assert SHIPPED.mode_of(intent) == mode


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("Implement user authentication with JWT", "implement"),
        ("please add pagination to the user list", "implement"),
        ("Añade paginación al listado", "implement"),
        ("Übersetze das ins Englische", "task"),
        ("Summarise this in two lines", "task"),
        ("Fix the login bug", "fix"),
        ("I'm getting an error in auth", "error"),
        ("it says\nTypeError: x is undefined", "error"),
        ("Traceback (most recent call last):", "error"),
        ("Why does the login fail after 5 minutes?", "debug"),
        ("mein Drucker geht nicht", "debug"),
        ("Teach me about Redux middleware", "teach"),
        ("Explain the difference between TCP and UDP", "explain"),
        ("How does PostgreSQL indexing work?", "learn"),
        ("¿Qué significa eso?", "learn"),
        ("What if we tried mode detection?", "explore"),
        ("I'm thinking about memory systems for AI", "explore"),
        ("look into the numbers of May", "investigate"),
        ("Thanks!", "general"),
        ("ok, merci", "general"),
    ],
)
def test_intent_by_the_beginning_of_a_text(text: str, intent: str) -> None:
    assert intent_of(text) == intent


@pytest.mark.parametrize(
    "text",
    [
        "fix the typo in the headline",
        "We moved the stand-up to 10",
        "The type error in compilers is a nice subject",
        "Paris or Lisbon in May?",
        "address of the dentist",
        "",
        "\ud800",
    ],
)
def test_uncertain_texts_have_no_intent(text: str) -> None:
    assert intent_of(text) is None


@pytest.mark.parametrize("piece", ["why ", "my ", "A", "AError", "please ", "\n", "at a.b", " at a\n", "a.", "hi "])
def test_repetitive_text_is_matched_in_bounded_time(piece: str) -> None:
    hostile = piece * (32_768 // len(piece))
    began = time.process_time()
    intent_of(hostile)
    assert time.process_time() - began < 2, "a text of this length takes about a millisecond"
