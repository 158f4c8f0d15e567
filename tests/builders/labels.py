from agents.rules.cues.labels import SentenceLabel, label_memory
from agents.rules.text.tokenizer import extract_entities
from tests.builders.memories import made


def labels_of(text: str, role: str = "user") -> SentenceLabel:
    return label_memory(made(text, role=role, entities=extract_entities(text)))
