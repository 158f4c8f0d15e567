"""The version of the lexical index is raised with the analysis of texts: an index of before is then built anew."""

import hashlib
import json
import re
from pathlib import Path

from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.lexical_document import LexicalDocument
from streams.adapters.lexical.file import SCHEMA_VERSION
from tests.builders.memories import made

TEXTS = Path(__file__).with_name("analysed_texts.txt").read_text().splitlines()
"""Sentences of our conversations: several of each label by form or cue, in five languages."""

VERSION, DIGEST = 12, "849f79ea735733e40f81b56b45c10cffc810752a1307bf3a8d824bf900249fc5"
"""The version that the analysis of these texts belongs to, and its digest."""

ROLES = SentenceLabel.USER | SentenceLabel.ASSISTANT | SentenceLabel.SYSTEM | SentenceLabel.TOOL


def document(text: str) -> LexicalDocument:
    """Return a turn as the index stores it; its entities are fixed, since they come from its record."""
    return LexicalDocument(made(text, entities=tuple(re.findall(r"\b[A-Z]\w+", text))))


def analysed(text: str) -> list[object]:
    found = document(text).analysis
    words = found.lines.split("\n") if found.length else []
    importance = round(document(text).importance(found.length), 6)
    return [words, found.entities, found.language, int(found.labels), importance]


def test_change_of_the_analysis_raises_the_schema_version() -> None:
    digest = hashlib.sha256(json.dumps([analysed(text) for text in TEXTS]).encode()).hexdigest()
    advice = "the index stores other words, languages, labels or importances: raise SCHEMA_VERSION, and note both here"
    assert digest == DIGEST, advice
    assert SCHEMA_VERSION == VERSION, advice


def test_texts_have_every_label() -> None:
    found = SentenceLabel(0)
    for text in TEXTS:
        found |= document(text).analysis.labels
    assert [label.name for label in SentenceLabel if label not in found | ROLES] == []
