import pytest

from agents.rules.text.tokenizer import (
    MAX_ENTITIES_PER_TEXT,
    MAX_ENTITY_CHARS,
    MAX_TERM_CHARS,
    content_terms,
    extract_entities,
    fold,
    question_terms,
    tokenize,
)


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("CAFÉ", "cafe"),
        ("Cafe\u0301", "café"),
        ("\U0001d518\U0001d52b\U0001d526", "uni"),
        ("Caroline\u2019s house", "caroline's"),
        ("fullwidth \uff21\uff22\uff23", "abc"),
        ("Straße", "STRASSE"),
        ("we need the well-known song", "known"),
        ("open the retryLater flag", "later"),
        ("l'année dernière", "annee"),
        ("我们把服务部署到新加坡了", "新加坡"),
        ("我们把服务部署到新加坡了", "服"),
        ("회의는 목요일", "목요"),
        ("Где МОЙ чай? Чёрный.", "мой черный"),
        ("👩‍👩‍👧‍👦 at home", "👧"),
        ("well done 👍🏽", "👍"),
    ],
)
def test_question_terms_match_text(written: str, asked: str) -> None:
    assert set(tokenize(asked)) <= set(tokenize(written))


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("ZX-81-K17", ["zx", "81", "k17"]),
        ("snake_case", ["snake", "case"]),
        ("fly.io", ["fly", "io"]),
        ("12:30", ["12", "30"]),
    ],
)
def test_an_identifier_is_found_whole_and_in_parts(identifier: str, parts: list[str]) -> None:
    found = tokenize(f"see {identifier}, please")
    assert set(parts) < set(found)
    assert len(set(tokenize(identifier)) - set(parts)) == 1, "the whole is a term of its own"


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        pytest.param("well-known", ["well", "known"], id="an ordinary compound gives only its parts"),
        pytest.param("don't take the girl's", ["don't", "take", "the", "girl's"], id="a contraction is one word"),
        pytest.param("tram, harbour, tram", ["tram", "harbour", "tram"], id="repetitions and order are kept"),
        pytest.param("... ?! -- ()", [], id="punctuation alone has no terms"),
    ],
)
def test_terms_of_a_text(text: str, terms: list[str]) -> None:
    assert tokenize(text) == terms


def test_unspaced_script_gives_characters_and_pairs() -> None:
    assert tokenize("新加坡") == ["新", "加", "坡", "新加", "加坡"]
    assert tokenize("v2新") == ["v2", "新"]


def test_question_terms_exclude_stop_words() -> None:
    assert question_terms("What is the violin teacher called?") == ["violin", "teacher", "called"]


def test_question_of_stop_words_keeps_them() -> None:
    assert question_terms("What is it?") == ["what", "is", "it"]
    assert content_terms("What is it?") == []


def test_stop_words_follow_the_language_of_the_question() -> None:
    assert question_terms("Wann ist die Katze gestorben?") == ["katze", "gestorben"]
    assert "die" in question_terms("Did the plants die?")


def test_stop_words_of_a_text_are_indexed() -> None:
    assert "the" in tokenize("the tram")


def test_question_terms_are_unique_by_stem() -> None:
    assert question_terms("violins violin VIOLIN") == ["violins"]
    assert question_terms("Wo sind die Katzen und die Katze?") == ["katzen"]
    assert question_terms("is it, is it not") == ["is", "it", "not"]


def test_long_runs_are_truncated() -> None:
    assert [len(term) for term in tokenize("a" * 1000)] == [MAX_TERM_CHARS]


def test_folding_is_idempotent() -> None:
    for text in ("Zoë 🎂 ÑANDÚ", "İstanbul", "Йод, мой йогурт", "회의", "\u2026\u2014\u2019"):
        assert fold(fold(text)) == fold(text)


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
