from agents.rules.cues.labels import SentenceLabel, label_memory
from agents.rules.text.tokenizer import extract_entities
from tests.builders.memories import made


def labels_of(text: str, role: str = "user") -> SentenceLabel:
    """Return the labels of a turn with this text and its extracted entities."""
    return label_memory(made(text, role=role, entities=extract_entities(text)))
