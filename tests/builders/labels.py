"""What rules see in a text that somebody says."""

from agents.rules.cues.labels import Mark, marks_of
from agents.rules.text.entities import entities
from tests.builders.memories import made


def seen(text: str, role: str = "user") -> Mark:
    """The marks of a text, with the entities that rules find in it."""
    return marks_of(made(text, role=role, entities=entities(text)))
