"""A memory as text."""

from agents.rules.text.embedding_text import MAX_CAPTION_CHARS, MAX_CONTENT_CHARS, embedding_text, lexical_text
from schemas.memories import Resource
from tests.builders.memories import made

PHOTO = Resource(uri="s3://bucket/a.png", media_type="image/png", text="a red kite")


def test_captions_stand_behind_the_content() -> None:
    nameless = Resource(uri="file:b", text="a report")
    memory = made("Look at this!", resources=(PHOTO, Resource(uri="file:silent"), nameless))
    assert embedding_text(memory) == "Look at this! [image: a red kite] [file: a report]"
    assert lexical_text(memory) == embedding_text(memory)


def test_nothing_of_the_speaker_is_embedded() -> None:
    assert embedding_text(made("Hello", speaker="Ana")) == "Hello"


def test_what_is_embedded_is_bounded_and_what_is_indexed_is_not() -> None:
    long = Resource(uri="file:c", media_type="video/mp4", text="z" * 9000)
    memory = made("a" * 9000, resources=(long,))
    assert embedding_text(memory) == f"{'a' * MAX_CONTENT_CHARS} [video: {'z' * MAX_CAPTION_CHARS}]"
    assert lexical_text(memory) == f"{'a' * 9000} [video: {'z' * 9000}]"
