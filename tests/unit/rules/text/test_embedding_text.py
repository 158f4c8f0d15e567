"""The texts of a memory for embedding and indexing."""

from agents.rules.text.embedding_text import (
    MAX_CAPTION_CHARS,
    MAX_CONTENT_CHARS,
    embedded_passages,
    embedding_text,
    lexical_text,
)
from schemas.state.memories import Resource
from tests.builders.memories import made

PHOTO = Resource(uri="s3://bucket/a.png", media_type="image/png", text="a red kite")


def test_captions_follow_the_content() -> None:
    nameless = Resource(uri="file:b", text="a report")
    memory = made("Look at this!", resources=(PHOTO, Resource(uri="file:silent"), nameless))
    assert embedding_text(memory) == "Look at this! [image: a red kite] [file: a report]"
    assert lexical_text(memory) == embedding_text(memory)


def test_speaker_is_not_embedded() -> None:
    assert embedding_text(made("Hello", speaker="Ana")) == "Hello"


def test_embedded_text_is_bounded_and_indexed_text_is_not() -> None:
    long = Resource(uri="file:c", media_type="video/mp4", text="z" * 9000)
    memory = made("a" * 9000, resources=(long,), origin="distilled")
    assert embedding_text(memory) == f"{'a' * MAX_CONTENT_CHARS} [video: {'z' * MAX_CAPTION_CHARS}]"
    assert lexical_text(memory) == f"{'a' * 9000} [video: {'z' * 9000}]"


def test_all_of_a_long_turn_is_embedded() -> None:
    text = "A sentence of a long reply. " * 400
    assert embedding_text(made(text)).split() == text.split()


def test_texts_that_are_cut_at_other_places_have_other_embedded_texts() -> None:
    """Else a blank line that moves would leave the vectors of the former passages."""
    line = ("words of a line " * 12).strip()
    former, latter = made(f"{line}\n{line}\n\n{line}"), made(f"{line}\n\n{line}\n{line}")
    assert embedded_passages(former) != embedded_passages(latter)
    assert embedding_text(former) != embedding_text(latter)


def test_a_text_that_is_cut_since_an_edit_has_another_embedded_text() -> None:
    line = "w" * 239
    assert embedding_text(made(f"{line}\n{line}w")) != embedding_text(made(f"{line}\n\n{line}w"))
