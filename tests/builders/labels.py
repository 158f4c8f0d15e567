"""What rules see in a text that somebody says."""

from agents.rules.cues.labels import SentenceLabel, label_memory
from agents.rules.text.entities import extract_entities
from tests.builders.memories import made


def seen(text: str, role: str = "user") -> SentenceLabel:
    """The marks of a text, with the entities that rules find in it."""
    return label_memory(made(text, role=role, entities=extract_entities(text)))
