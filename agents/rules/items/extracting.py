"""What is worth keeping by itself in one turn: items by rule, items of a language model, segments of documents. Pure.

Enters: the memory that a turn is, and what a model understood of it. Leaves: what was found, each with the place where
it stands. Guaranteed: every span lies inside its text; the text of what rules found is exactly its span; the same
memory gives the same items in the same order; time linear in the text. A sentence that asks or only supposes gives
nothing.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from agents.rules.items.found import ExtractedItem, SourceText, found_item_at
from agents.rules.items.item_sentences import classify_sentence
from agents.rules.items.kinds import ALLOWED_KINDS, FIRST_PERSON_VOICES, RULE_KINDS, Voice, voice_of
from agents.rules.items.procedures import find_step_lists
from agents.rules.prompts.prompting import verify_items
from agents.rules.text.chunking import Span, chunk_text, sentence_spans
from agents.rules.text.sentences import MAX_PARSED_CHARS
from schemas.memories import Memory
from schemas.understanding import Understanding

MAX_RULE_ITEMS = 8
"""Items of one text by rule: what states more is a page, and is found by its segments."""

MAX_SEGMENTS = 128
"""Segments of one turn's documents: those of two of the longest resources."""

MAX_DOCUMENT_CHARS = 4 * MAX_PARSED_CHARS
"""Characters of one turn's documents in which sentences are looked at: a turn may bring a hundred pages, and each takes
some 5 ms to find nothing in."""

MIN_OVERLAP_SHARE = 0.5
"""Share of the shorter of two spans that both have when they say the same."""


def extract_items(memory: Memory, understanding: Understanding | None = None) -> list[ExtractedItem]:
    """Everything found in one turn, by rules and where there is an answer by a model; what both say, once."""
    ruled = extract_by_rules(memory)
    return ruled if understanding is None else merge_found_items(ruled, extract_by_model(memory, understanding))


def extract_by_rules(memory: Memory) -> list[ExtractedItem]:
    """The items that rules find in a turn and in its resources, then the segments of those; none of what is no turn."""
    voice = voice_of(memory)
    if voice is None:
        return []
    said = islice(_items(SourceText(memory, memory.text, None, voice)), MAX_RULE_ITEMS)
    if not memory.resources:
        return list(said)
    shown = chain.from_iterable(map(_items, _first(_documents(memory))))
    cut = (found_item_at(place, span, None) for place in _documents(memory) for span in chunk_text(place.text))
    return [*said, *islice(shown, MAX_RULE_ITEMS), *islice(cut, MAX_SEGMENTS)]


def extract_by_model(memory: Memory, found: Understanding) -> list[ExtractedItem]:
    """The items of a model whose quotation stands in the turn's text, or else in that of a resource.

    Others are dropped; so is a rule that was set by nobody who may: a tool's output may be anybody's text.
    """
    voice = voice_of(memory)
    if voice is None or not found.items:
        return []
    placed: dict[int, ExtractedItem] = {}
    for place in (SourceText(memory, memory.text, None, voice), *_documents(memory)):
        allowed = ALLOWED_KINDS[place.voice]
        for one in verify_items(found, place.text):
            if id(one.item) not in placed and (one.item.kind in allowed or one.item.kind not in RULE_KINDS):
                text = one.item.text.strip() or None
                placed[id(one.item)] = found_item_at(
                    place, Span(one.start, one.end), one.item.kind, text, one.item.confidence
                )
    return [placed[id(item)] for item in found.items if id(item) in placed]


def merge_found_items(ruled: Sequence[ExtractedItem], modelled: Sequence[ExtractedItem]) -> list[ExtractedItem]:
    """Both lists, without what the model says again: there the rules' words stay, and the higher confidence."""
    items = list(ruled)
    for one in modelled:
        same = next((place for place, other in enumerate(ruled) if _say_the_same(one, other)), None)
        if same is None:
            items.append(one)
        else:
            items[same] = items[same]._replace(confidence=max(items[same].confidence, one.confidence))
    return items


def _documents(memory: Memory) -> list[SourceText]:
    return [SourceText(memory, one.text, one.uri, Voice.DOCUMENT) for one in memory.resources if one.text]


def _first(places: Sequence[SourceText]) -> Iterator[SourceText]:
    """As many of these as are read for their sentences."""
    read = 0
    for place in places:
        read += min(len(place.text), MAX_PARSED_CHARS)
        if read > MAX_DOCUMENT_CHARS:
            return
        yield place


def _items(place: SourceText) -> Iterator[ExtractedItem]:
    """The lists of steps in a text, then its sentences that are items by themselves."""
    allowed, somebody = ALLOWED_KINDS[place.voice], place.voice in FIRST_PERSON_VOICES
    steps = find_step_lists(place.text) if "procedure" in allowed else []
    yield from (found_item_at(place, span, "procedure") for span in steps)
    for span in sentence_spans(place.text):
        if any(span.start < other.end and other.start < span.end for other in steps):
            continue
        kind = classify_sentence(place.text[span.start : span.end], has_first_person=somebody)
        if kind in allowed:
            yield found_item_at(place, span, kind)


def _say_the_same(one: ExtractedItem, other: ExtractedItem) -> bool:
    shared = min(one.end, other.end) - max(one.start, other.start)
    shorter = min(one.end - one.start, other.end - other.start)
    return (one.kind, one.resource) == (other.kind, other.resource) and shared >= max(1, MIN_OVERLAP_SHARE * shorter)
