"""Claims of sentences."""

import pytest

from agents.rules.items.claim_reading import extract_claim


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The deploy target is fly.io now.", "Actually, we moved the deploy target to AWS."),
        ("The deploy target is fly.io.", "The deploy target isn't fly.io but AWS."),
        ("The deploy target is fly.io.", "No, the new deploy target is AWS, not fly.io."),
        ("The port of the metrics server is 9410.", "The port of the metrics server is 9411 now."),
        ("My birthday is on 3 May.", "Actually, my birthday is 4 May."),
        ("I live in Lyon.", "I now live in Paris."),
        ("My sister's birthday is 3 May.", "My sister's birthday is 5 May."),
        ("We decided to use PostgreSQL for the ledger.", "We decided to use MySQL for the ledger instead."),
        ("Das Deploy-Ziel ist fly.io.", "Das Deploy-Ziel ist jetzt AWS."),
        ("Vivo en Madrid.", "Vivo ahora en Sevilla."),
    ],
)
def test_contradicting_sentences_share_a_claim(earlier: str, later: str) -> None:
    claim = extract_claim(earlier, "ana")
    assert claim is not None
    assert extract_claim(later, "ana") == claim


@pytest.mark.parametrize("text", ["I live in Lyon.", "My name is Ana.", "My sister's birthday is 3 May."])
def test_first_person_claims_are_per_speaker(text: str) -> None:
    assert extract_claim(text, "ana") != extract_claim(text, "bob")


def test_project_claims_are_independent_of_the_speaker() -> None:
    text = "The deploy target is fly.io."
    assert extract_claim(text, "ana") == extract_claim(text, "bob") == "deploy target|is"


@pytest.mark.parametrize(
    "text",
    [
        "I like tea.",
        "My friend is Ana.",
        "The API is fast.",
        "The API is written in Go.",
        "The port is 5432.",
        "The deadline is Monday.",
        "The deploy target is unclear.",
        "The deploy target is not AWS.",
        "We use PostgreSQL 16.",
        "We moved to Slack.",
        "We live in 62 square metres.",
        "The one I told you of is Orvane.",
        "She said the deploy target is AWS.",
    ],
)
def test_compatible_statements_have_no_claim(text: str) -> None:
    assert extract_claim(text, "ana") is None


@pytest.mark.parametrize("text", ["", "?!", "the", "{subject} is 5", "The {own} port is 5."])
def test_braces_in_a_text_are_literal(text: str) -> None:
    assert extract_claim(text, "{subject}") in {None, "own port|is"}
