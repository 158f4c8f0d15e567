"""A question without the names of those who speak."""

from agents.rules.query.questions import MAX_QUESTION_TERMS, parse_question

SPEAKERS = ["Caroline Smith", "Ana", "Will"]


def test_names_of_speakers_are_taken_out_and_remembered() -> None:
    question = parse_question("When did Caroline's dog run away?", SPEAKERS)
    assert (question.text, question.named) == ("When did dog run away?", frozenset({"Caroline Smith"}))
    assert question.terms == ("dog", "run")


def test_a_name_in_a_question_without_capitals_is_a_name() -> None:
    assert parse_question("where does ana live", SPEAKERS).named == frozenset({"Ana"})


def test_a_word_that_is_only_spelt_like_a_name_stays() -> None:
    question = parse_question("What will Ana build?", SPEAKERS)
    assert (question.text, question.named) == ("What will build?", frozenset({"Ana"}))


def test_names_stay_where_nothing_else_is_left() -> None:
    question = parse_question("What did Ana say?", SPEAKERS)
    assert question.text == "What did Ana say?"
    assert question.terms == ("ana",)
    assert question.named == frozenset({"Ana"})


def test_two_speakers_of_one_name_are_both_meant() -> None:
    assert parse_question("Ana's bike", ["Ana Lima", "Ana Roth"]).named == frozenset({"Ana Lima", "Ana Roth"})


def test_without_speakers_nothing_is_taken_out() -> None:
    assert parse_question("Ana's bike", []).text == "Ana's bike"


def test_a_pasted_page_has_a_limit() -> None:
    assert len(parse_question(" ".join(f"word{n}" for n in range(5000)), []).terms) == MAX_QUESTION_TERMS
