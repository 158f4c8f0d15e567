"""What rules see in a text that somebody says."""

from agents.rules.entities import entities
from agents.rules.marks import Mark, marks_of
from tests.made_memories import made


def seen(text: str, role: str = "user") -> Mark:
    """The marks of a text, with the entities that rules find in it."""
    return marks_of(made(text, role=role, entities=entities(text)))
