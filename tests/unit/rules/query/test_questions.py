"""Parsing of questions; speaker names are separated from the text."""

import pytest

from agents.rules.query.questions import MAX_QUESTION_TERMS, QUESTION_TYPES, detect_question_types, parse_question

SPEAKERS = ["Caroline Smith", "Ana", "Will"]


def test_speaker_names_are_extracted() -> None:
    question = parse_question("When did Caroline's dog run away?", SPEAKERS)
    assert question.text == "When did dog run away?"
    assert question.named == frozenset({"Caroline Smith"})
    assert question.terms == ("dog", "run")


def test_lower_case_question_can_name_a_speaker() -> None:
    assert parse_question("where does ana live", SPEAKERS).named == frozenset({"Ana"})


def test_lower_case_word_equal_to_a_name_is_kept() -> None:
    question = parse_question("What will Ana build?", SPEAKERS)
    assert question.text == "What will build?"
    assert question.named == frozenset({"Ana"})


def test_names_are_kept_if_nothing_else_is_left() -> None:
    question = parse_question("What did Ana say?", SPEAKERS)
    assert question.text == "What did Ana say?"
    assert question.terms == ("ana",)
    assert question.named == frozenset({"Ana"})


def test_shared_first_name_means_both_speakers() -> None:
    assert parse_question("Ana's bike", ["Ana Lima", "Ana Roth"]).named == frozenset({"Ana Lima", "Ana Roth"})


def test_without_speakers_the_text_is_unchanged() -> None:
    assert parse_question("Ana's bike", []).text == "Ana's bike"


def test_terms_of_a_pasted_page_are_limited() -> None:
    assert len(parse_question(" ".join(f"word{n}" for n in range(5000)), []).terms) == MAX_QUESTION_TERMS


@pytest.mark.parametrize(
    ("question", "trait"),
    [
        ("When did Ana move?", "when"),
        ("What year did she start?", "when"),
        ("Wann ist der Termin?", "when"),
        ("¿Cuándo llegó el pedido?", "when"),
        ("Quand est-ce qu'on joue ?", "when"),
        ("Quando abbiamo aperto?", "when"),
        ("How many hives are there?", "how_many"),
        ("Wie viel Euro kostet die Box?", "how_many"),
        ("¿Cuántas cajas quedan?", "how_many"),
        ("Combien de projecteurs ?", "how_many"),
        ("Where does he live?", "where"),
        ("Wo liegt der Schlüssel?", "where"),
        ("Who chose the name?", "who"),
        ("Quem fez as portas?", "who"),
        ("Why was it late?", "why"),
        ("¿Por qué cambiamos?", "why"),
        ("Did she like it?", "yes_no"),
        ("Would Ana enjoy a concert?", "would"),
        ("What hobbies has she taken up?", "several"),
        ("What kind of car is it?", "what_kind"),
        ("What did I buy?", "own"),
        ("What did you suggest?", "yours"),
    ],
)
def test_question_has_type(question: str, trait: str) -> None:
    assert trait in detect_question_types(question)


@pytest.mark.parametrize(
    ("question", "trait"),
    [
        ("What did she say?", "when"),
        ("The deploy target", "what"),
        ("Who is it?", "how_many"),
        ("How did it go?", "how_many"),
        ("What is it like where she lives?", "yes_no"),
    ],
)
def test_question_does_not_have_type(question: str, trait: str) -> None:
    assert trait not in detect_question_types(question)


def test_long_text_yields_only_known_types() -> None:
    assert detect_question_types("when, why and who? " * 100_000) <= QUESTION_TYPES


@pytest.mark.parametrize(
    "question",
    [
        "Which hotel did you recommend for the first night?",
        "what did you tell me about the glaze",
        "Welchen Handwerker hattest du empfohlen?",
        "Quel livre m'avais-tu conseill\u00e9 ?",
        "\u00bfQu\u00e9 crema me recomendaste?",
    ],
)
def test_a_question_for_advice_is_recognised(question: str) -> None:
    assert "advised" in detect_question_types(question)


@pytest.mark.parametrize(
    "remark",
    [
        "They asked if I'd organise the summer party as well, and I said sure.",
        "ok back to the brochure, write the intro now for our regular customers",
        "Heute morgen stand der Nachbar schon wieder mit der S\u00e4ge im Garten.",
    ],
)
def test_a_sentence_that_asks_nothing_is_a_remark(remark: str) -> None:
    assert "remark" in detect_question_types(remark)


@pytest.mark.parametrize(
    "words",
    [
        "salty soup",
        "PostgreSQL for the ledger, and to run the release",
        "where does ana live",
        "the name of our dentist?",
    ],
)
def test_words_to_look_for_are_no_remark(words: str) -> None:
    assert "remark" not in detect_question_types(words)
