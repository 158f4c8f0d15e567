import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.rules.cues.labels import NO_LABELS, SentenceLabel, label_memory, sentences_with_labels
from schemas.state.memories import Resource
from tests.builders.labels import labels_of
from tests.builders.memories import made


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Must validate all user input", SentenceLabel.SAFETY),
        ("No, use LDAP not OAuth", SentenceLabel.CORRECTION),
        ("Must support 10,000 concurrent users", SentenceLabel.CONSTRAINT),
        ("Stack trace: Authentication failing", SentenceLabel.ERROR),
    ],
    ids=lambda value: str(value)[:12],
)
def test_specified_examples_have_their_labels(text: str, label: SentenceLabel) -> None:
    assert label in labels_of(text)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("We decided to go with Postgres.", SentenceLabel.DECISION),
        ("Let's go with the blue one.", SentenceLabel.DECISION),
        ("Wir haben uns für Postgres entschieden.", SentenceLabel.DECISION),
        ("Decidimos usar Postgres.", SentenceLabel.DECISION),
        ("On a décidé de partir en mai.", SentenceLabel.DECISION),
        ("The goal is a site that loads in a second.", SentenceLabel.GOAL),
        ("I'm trying to replace the old scheduler.", SentenceLabel.GOAL),
        ("Done, the report is sent.", SentenceLabel.DONE),
        ("We still need to write the docs.", SentenceLabel.PENDING),
        ("I updated the driver yesterday.", SentenceLabel.CHANGE),
        ("A rule of thumb: measure twice.", SentenceLabel.PRINCIPLE),
        ("For example, a queue with two readers.", SentenceLabel.EXAMPLE),
        ("The retry pattern has three steps.", SentenceLabel.PATTERN),
        ("It turns out that the cache was cold.", SentenceLabel.INSIGHT),
        ("I'm not sure whether we need it.", SentenceLabel.OPEN_QUESTION),
        ("I prefer tea.", SentenceLabel.PREFERENCE),
        ("Please always answer in German.", SentenceLabel.INSTRUCTION),
        ("I love the sea.", SentenceLabel.LIKING),
        ("Maybe we could use Redis.", SentenceLabel.SPECULATION),
        ("Because the line was cut.", SentenceLabel.REASON),
        ("Where is it?", SentenceLabel.QUESTION),
        ("It was 12 metres.", SentenceLabel.NUMBER),
        ("On 3 March 2026.", SentenceLabel.DATE),
        ("At 9:30 then.", SentenceLabel.TIME),
        ("It took three weeks.", SentenceLabel.DURATION),
        ("That's 40 euros.", SentenceLabel.MONEY),
        ("I met Ana Ruiz there.", SentenceLabel.NAME),
        ("See https://example.com/x", SentenceLabel.LINK),
        ("```\nx = 1\n```", SentenceLabel.CODE),
        ("Thanks!", SentenceLabel.COURTESY),
        ("We live by the river.", SentenceLabel.FIRST_PERSON),
    ],
    ids=lambda value: str(value)[:14],
)
def test_each_label_is_found(text: str, label: SentenceLabel) -> None:
    assert label in labels_of(text)


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_role_is_a_label(role: str) -> None:
    roles = SentenceLabel.USER | SentenceLabel.ASSISTANT | SentenceLabel.SYSTEM | SentenceLabel.TOOL
    assert (labels_of("Hello there", role) & roles).name == role.upper()


def test_distilled_memory_has_no_role() -> None:
    assert label_memory(made("plain words", role=None)) == NO_LABELS


def test_labelled_sentences_are_returned_as_written() -> None:
    text = "Hello! The Export must finish within an hour. Tea? Never deploy on a Friday."
    assert list(sentences_with_labels(text, SentenceLabel.CONSTRAINT)) == [
        "The Export must finish within an hour.",
        "Never deploy on a Friday.",
    ]


@given(st.text(max_size=400))
def test_labels_fit_an_integer_and_are_deterministic(text: str) -> None:
    labels = labels_of(text or " ")
    assert 0 <= labels.value < 2**62
    assert labels == labels_of(text or " ")


@pytest.mark.parametrize(
    "piece", ["no, ", "must not ", "then not be ", "a ", "never use ", "- ", "it's ", "12:", "i'm getting the same "]
)
def test_repetitive_text_is_labelled_in_linear_time(piece: str) -> None:
    labels_of(piece * (32_768 // len(piece)))


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("We ship on 12 May.", SentenceLabel.DATE),
        ("The fair is in March.", SentenceLabel.DATE),
        ("It ends May 12.", SentenceLabel.DATE),
        ("We picked Postgres.", SentenceLabel.DECISION),
        ("We dropped the second design.", SentenceLabel.DECISION),
        ("Let's keep the old port.", SentenceLabel.DECISION),
        ("My son is allergic to peanuts.", SentenceLabel.SAFETY),
        ("Tengo una alergia.", SentenceLabel.SAFETY),
        ("She has a bad allergy to bees.", SentenceLabel.SAFETY),
    ],
    ids=lambda value: str(value)[:12],
)
def test_phrase_has_the_label(text: str, label: SentenceLabel) -> None:
    assert label in labels_of(text)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("All 4 may need help.", SentenceLabel.DATE),
        ("You may call at 12.", SentenceLabel.DATE),
        ("I picked up the parcel.", SentenceLabel.DECISION),
        ("We dropped off the kids.", SentenceLabel.DECISION),
        ("Let's keep trying.", SentenceLabel.DECISION),
        ("That must be awesome!", SentenceLabel.CONSTRAINT),
        ("It must be amazing to live there.", SentenceLabel.CONSTRAINT),
        ("I'm not allergic to nuts.", SentenceLabel.SAFETY),
        ("No es alérgico a las nueces.", SentenceLabel.SAFETY),
        ("She has no allergy.", SentenceLabel.SAFETY),
        ("Ich bin nicht allergisch.", SentenceLabel.SAFETY),
    ],
    ids=lambda value: str(value)[:12],
)
def test_similar_phrase_lacks_the_label(text: str, label: SentenceLabel) -> None:
    assert label not in labels_of(text)


def test_foreign_text_is_labelled() -> None:
    assert SentenceLabel.FOREIGN in labels_of("La tetera está en la cocina con las tazas.")
    assert SentenceLabel.FOREIGN in labels_of("昨日、新しい自転車を買いました。")
    assert SentenceLabel.FOREIGN not in labels_of("The kettle is in the kitchen.")


def test_language_is_that_of_the_embedded_text() -> None:
    caption = Resource(uri="a", media_type="image/png", text="La tetera está en la cocina con las tazas de la abuela.")
    assert SentenceLabel.FOREIGN in label_memory(made("Look!", resources=(caption,)))
    assert SentenceLabel.FOREIGN not in label_memory(made("The kettle. " * 200 + "La tetera está en la cocina. " * 500))


@pytest.mark.parametrize("piece", ["\n", "\n ", "@a.", "a@", "1,"])
def test_repeated_piece_is_labelled_in_linear_time(piece: str) -> None:
    began = time.process_time()
    for number in range(20):
        assert SentenceLabel.CODE not in labels_of((piece * 8192)[:8192] + str(number))
    assert time.process_time() - began < 2, "quadratic: matching of line starts takes 0.2 s, and then 6 s"


def test_code_links_and_amounts_are_found_anywhere() -> None:
    assert SentenceLabel.CODE in labels_of("It is this:\n\n\t def violin(bow):")
    assert SentenceLabel.MONEY in labels_of(
        "They are 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,5 euros."
    )
    assert SentenceLabel.LINK in labels_of("Write to\n\n ana.b@strings.example please.")
