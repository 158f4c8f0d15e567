"""Term coverage, and whether a layer suffices."""

import pytest

from agents.rules.answer.drill_down import category_layer
from agents.rules.answer.hits import TermCoverage, is_sufficient, match_entries
from agents.rules.query.questions import parse_question
from agents.rules.text.languages import LANGUAGES
from schemas.state.categories import Category

ENGLISH, GERMAN = LANGUAGES.index("english"), LANGUAGES.index("german")


def coverage_of(
    terms: list[str], weights: list[float] | None = None, languages: tuple[int, ...] = (ENGLISH,)
) -> TermCoverage:
    return TermCoverage(terms, weights or [1.0] * len(terms), languages)


def test_terms_match_by_stem_in_known_languages() -> None:
    asked = coverage_of(["deploying", "ledger"])
    assert asked.terms_in("We deploy it.") == {0}
    assert asked.terms_in("LEDGERS were deployed") == {0, 1}
    assert coverage_of(["katzen"]).terms_in("eine Katze") == frozenset()
    assert coverage_of(["katzen"], languages=(ENGLISH, GERMAN)).terms_in("eine Katze") == {0}


def test_share_is_relative_to_the_total_weight() -> None:
    asked = coverage_of(["harbour", "tram"], [3.0, 1.0])
    assert [asked.share(places) for places in ([], [0], [1], [0, 1])] == [0.0, 0.75, 0.25, 1.0]
    assert coverage_of([]).share([]) == 0.0


def test_matches_are_best_first_without_weak_ones() -> None:
    asked = coverage_of(["ship", "beta", "harbour", "tram", "rail"])
    texts = ["the tram", "the harbour tram ships", "ship the beta by rail", "the beta", "dinner"]
    assert [entry.place for entry in match_entries(texts, asked)] == [1, 2]
    assert [entry.place for entry in match_entries(["the beta", "a ship", "soup"], coverage_of(["ship", "beta"]))] == [
        0,
        1,
    ]


@pytest.mark.parametrize(
    ("query", "enough"),
    [
        ("the harbour tram on rails", True),
        ("the harbour tram on rails to Lisbon", True),
        ("the harbour tram to Lisbon", False),
        ("how many harbour trams on rails?", False),
        ("when is the harbour tram on rails?", False),
        ("is it?", False),
    ],
)
def test_high_coverage_suffices_unless_date_or_number_is_missing(query: str, enough: bool) -> None:
    question = parse_question(query, ())
    asked = coverage_of(list(question.terms))
    texts = ["The harbour tram is late. Is it?", "Trams run on rails."]
    assert is_sufficient(match_entries(texts, asked), texts, question, asked) is enough


def test_number_or_date_answers_a_question_for_one() -> None:
    texts = ["The harbour tram leaves at nine on Friday, with 12 seats."]
    for query in ("when does the harbour tram leave?", "how many seats has the harbour tram?"):
        question = parse_question(query, ())
        asked = coverage_of(list(question.terms))
        assert is_sufficient(match_entries(texts, asked), texts, question, asked)


@pytest.mark.parametrize(("summary", "enough"), [("The knee heals.", True), (None, False)])
def test_description_alone_never_suffices(summary: str | None, enough: bool) -> None:
    category = Category(name="health", description="doctors and sports", summary=summary)
    question = parse_question("doctors and sports?", ())
    layer = category_layer([({}, category)], question, coverage_of(list(question.terms)))
    assert layer.suffices == enough
    assert [category["name"] for category in layer.shown] == ["health"]
