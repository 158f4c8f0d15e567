"""What rules see in a memory, and in texts of any kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.rules.cues.labels import NO_MARK, Mark, marked_parts, marks_of
from schemas.memories import Resource
from tests.builders.labels import seen
from tests.builders.memories import made


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("Must validate all user input", Mark.SAFETY),
        ("No, use LDAP not OAuth", Mark.CORRECTION),
        ("Must support 10,000 concurrent users", Mark.CONSTRAINT),
        ("Stack trace: Authentication failing", Mark.ERROR),
    ],
    ids=lambda value: str(value)[:12],
)
def test_the_seeds_own_examples_are_what_the_seed_says(text: str, mark: Mark) -> None:
    assert mark in seen(text)


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("We decided to go with Postgres.", Mark.DECISION),
        ("Let's go with the blue one.", Mark.DECISION),
        ("Wir haben uns für Postgres entschieden.", Mark.DECISION),
        ("Decidimos usar Postgres.", Mark.DECISION),
        ("On a décidé de partir en mai.", Mark.DECISION),
        ("The goal is a site that loads in a second.", Mark.GOAL),
        ("I'm trying to replace the old scheduler.", Mark.GOAL),
        ("Done, the report is sent.", Mark.DONE),
        ("We still need to write the docs.", Mark.PENDING),
        ("I updated the driver yesterday.", Mark.CHANGE),
        ("A rule of thumb: measure twice.", Mark.PRINCIPLE),
        ("For example, a queue with two readers.", Mark.EXAMPLE),
        ("The retry pattern has three steps.", Mark.PATTERN),
        ("It turns out that the cache was cold.", Mark.INSIGHT),
        ("I'm not sure whether we need it.", Mark.OPEN_QUESTION),
        ("I prefer tea.", Mark.PREFERENCE),
        ("Please always answer in German.", Mark.INSTRUCTION),
        ("I love the sea.", Mark.LIKING),
        ("Maybe we could use Redis.", Mark.SPECULATION),
        ("Because the line was cut.", Mark.REASON),
        ("Where is it?", Mark.QUESTION),
        ("It was 12 metres.", Mark.NUMBER),
        ("On 3 March 2026.", Mark.DATE),
        ("At 9:30 then.", Mark.TIME),
        ("It took three weeks.", Mark.DURATION),
        ("That's 40 euros.", Mark.MONEY),
        ("I met Ana Ruiz there.", Mark.NAME),
        ("See https://example.com/x", Mark.LINK),
        ("```\nx = 1\n```", Mark.CODE),
        ("Thanks!", Mark.COURTESY),
        ("We live by the river.", Mark.FIRST_PERSON),
    ],
    ids=lambda value: str(value)[:14],
)
def test_each_mark_is_seen(text: str, mark: Mark) -> None:
    assert mark in seen(text)


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_a_mark_says_who_speaks(role: str) -> None:
    roles = Mark.USER | Mark.ASSISTANT | Mark.SYSTEM | Mark.TOOL
    assert (seen("Hello there", role) & roles).name == role.upper()


def test_what_was_distilled_is_said_by_nobody() -> None:
    assert marks_of(made("plain words", role=None)) == NO_MARK


def test_the_sentences_that_have_a_mark_are_found_as_they_were_written() -> None:
    text = "Hello! The Export must finish within an hour. Tea? Never deploy on a Friday."
    assert marked_parts(text, Mark.CONSTRAINT) == [
        "The Export must finish within an hour.",
        "Never deploy on a Friday.",
    ]


@given(st.text(max_size=400))
def test_any_text_has_marks_that_fit_an_integer(text: str) -> None:
    marks = seen(text or " ")
    assert 0 <= marks.value < 2**62
    assert marks == seen(text or " ")


@pytest.mark.parametrize(
    "piece", ["no, ", "must not ", "a ", "never use ", "- ", "it's ", "12:", "i'm getting the same "]
)
def test_a_long_text_of_one_piece_is_read_in_no_time_to_speak_of(piece: str) -> None:
    seen(piece * (32_768 // len(piece)))


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("We ship on 12 May.", Mark.DATE),
        ("The fair is in March.", Mark.DATE),
        ("It ends May 12.", Mark.DATE),
        ("We picked Postgres.", Mark.DECISION),
        ("We dropped the second design.", Mark.DECISION),
        ("Let's keep the old port.", Mark.DECISION),
        ("My son is allergic to peanuts.", Mark.SAFETY),
        ("Tengo una alergia.", Mark.SAFETY),
        ("She has a bad allergy to bees.", Mark.SAFETY),
    ],
    ids=lambda value: str(value)[:12],
)
def test_what_is_said_so_has_the_mark(text: str, mark: Mark) -> None:
    assert mark in seen(text)


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("All 4 may need help.", Mark.DATE),
        ("You may call at 12.", Mark.DATE),
        ("I picked up the parcel.", Mark.DECISION),
        ("We dropped off the kids.", Mark.DECISION),
        ("Let's keep trying.", Mark.DECISION),
        ("That must be awesome!", Mark.CONSTRAINT),
        ("It must be amazing to live there.", Mark.CONSTRAINT),
        ("I'm not allergic to nuts.", Mark.SAFETY),
        ("No es alérgico a las nueces.", Mark.SAFETY),
        ("She has no allergy.", Mark.SAFETY),
        ("Ich bin nicht allergisch.", Mark.SAFETY),
    ],
    ids=lambda value: str(value)[:12],
)
def test_what_merely_sounds_so_has_not(text: str, mark: Mark) -> None:
    assert mark not in seen(text)


def test_what_an_english_model_can_not_read_is_marked() -> None:
    assert Mark.FOREIGN in seen("La tetera está en la cocina con las tazas.")
    assert Mark.FOREIGN in seen("昨日、新しい自転車を買いました。")
    assert Mark.FOREIGN not in seen("The kettle is in the kitchen.")


def test_the_language_is_that_of_what_is_embedded() -> None:
    caption = Resource(uri="a", media_type="image/png", text="La tetera está en la cocina con las tazas de la abuela.")
    assert Mark.FOREIGN in marks_of(made("Look!", resources=(caption,)))
    assert Mark.FOREIGN not in marks_of(made("The kettle. " * 200 + "La tetera está en la cocina. " * 500))


@pytest.mark.timeout(10)  # where each line looks at all lines before it, this takes half a minute
@pytest.mark.parametrize("piece", ["\n", "\n ", "@a.", "a@", "1,"])
def test_a_text_of_one_piece_is_marked_in_no_time_to_speak_of(piece: str) -> None:
    for number in range(100):
        assert Mark.CODE not in seen((piece * 8192)[:8192] + str(number))


def test_code_links_and_amounts_are_seen_wherever_they_stand() -> None:
    assert Mark.CODE in seen("It is this:\n\n\t def violin(bow):")
    assert Mark.MONEY in seen("They are 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,5 euros.")
    assert Mark.LINK in seen("Write to\n\n ana.b@strings.example please.")
