"""Names, identifiers, mentions and addresses."""

import pytest

from agents.rules.text.entities import MAX_ENTITIES_PER_TEXT, MAX_ENTITY_CHARS, extract_entities


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Lunch with Mrs Okafor in New York.", {"Mrs Okafor", "New York"}),
        ("He read at the University of Oxford", {"University of Oxford"}),
        ("It was Caroline's dog.", {"Caroline"}),
        ("Thanks to @ana.b, see https://fly.io/docs.", {"@ana.b", "https://fly.io/docs"}),
        ("Part ZX-81-K17 breaks in main_loop", {"ZX-81-K17", "main_loop"}),
        ("sie fuhr nach Köln", {"Köln"}),
        ("the cat slept", set()),
    ],
)
def test_entities_are_found_as_written(text: str, expected: set[str]) -> None:
    assert expected <= set(extract_entities(text))
    assert expected or not extract_entities(text)


@pytest.mark.parametrize("text", ["Bought rosin.", "Great! Thanks. Dinner was good.", "Did I say so? I'm sure."])
def test_capitalised_sentence_start_is_no_name(text: str) -> None:
    assert extract_entities(text) == ()


def test_entities_are_unique_ignoring_case() -> None:
    assert extract_entities("we saw Berlin, and BERLIN again").count("Berlin") == 1
    assert len(extract_entities("we saw Berlin, and BERLIN again")) == 1


def test_number_and_length_of_entities_are_limited() -> None:
    assert len(extract_entities(" ".join(f"id_{n}" for n in range(500)))) == MAX_ENTITIES_PER_TEXT
    assert extract_entities("https://a.b/" + "x" * MAX_ENTITY_CHARS) == ()
