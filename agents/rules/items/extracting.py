"""Extract the items of a turn: by rule, by a language model, and as segments of documents. Pure.

Enters: the memory of a turn, and the understanding of a model. Leaves: items with their spans. Guaranteed: every span
lies inside its text; the text of an item by rule is exactly its span; the same items in the same order for the same
memory; time linear in the text. Questions and suppositions give no items.

Reading a page takes a tenth of a second, so it is done off the event loop before the items are needed. The memory may
change meanwhile: an analysis counts only for its own text and surroundings.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from modestream_client.vocabulary import ItemKind, MemoryType

from agents.rules.cues.labels import ASSERTIVE, find_cue_labels
from agents.rules.items.claim_reading import extract_claim, is_own_claim
from agents.rules.items.facts import FIRST_PERSON, states_fact
from agents.rules.items.kinds import (
    ALLOWED_KINDS,
    CLAIM_KINDS,
    FIRST_PERSON_VOICES,
    MAX_REPORT_CHARS,
    REPLACING_VOICES,
    RULE_KINDS,
    Voice,
    find_step_lists,
    is_procedure,
    kind_of,
    voice_of,
)
from agents.rules.prompts.prompting import verify_items
from agents.rules.text.dates import find_dates
from agents.rules.text.languages import stop_words_of
from agents.rules.text.passages import (
    MAX_CHUNK_CHARS,
    MAX_PARSED_CHARS,
    Sentence,
    Span,
    chunk_text,
    parse_sentence,
    sentence_spans,
    written_words,
)
from agents.rules.text.tokenizer import extract_entities, fold
from schemas.state.memories import Memory
from schemas.state.understanding import Understanding


class KindRating(NamedTuple):
    """The figures of an item's kind, and its memory type.

    `confidence`: precision of the rules, rounded down: of 110 items judged by hand in the project's conversations nine
    in ten were right, fewer of the kinds that are also said in jest. `stability`: a ranking, not measured: an allergy
    lasts, an error is fixed.
    """

    confidence: float
    stability: float
    type: MemoryType


KIND_RATINGS: Mapping[ItemKind | None, KindRating] = {
    "fact": KindRating(0.8, 0.8, "semantic"),
    "preference": KindRating(0.8, 0.8, "semantic"),
    "decision": KindRating(0.8, 0.7, "semantic"),
    "constraint": KindRating(0.8, 0.8, "semantic"),
    "correction": KindRating(0.7, 0.8, "semantic"),
    "safety": KindRating(0.8, 0.95, "semantic"),
    "procedure": KindRating(0.8, 0.7, "procedural"),
    "open_question": KindRating(0.8, 0.3, "state_object"),
    "error": KindRating(0.7, 0.2, "state_object"),
    "goal": KindRating(0.7, 0.5, "state_object"),
    None: KindRating(1.0, 0.9, "document"),
}
"""By kind; None is a segment of a document."""

VOICE_FACTOR: Mapping[Voice, float] = {
    Voice.USER: 1.0,
    Voice.PERSON: 1.0,
    Voice.SYSTEM: 1.0,
    Voice.TOOL: 0.9,
    Voice.ASSISTANT: 0.8,
    Voice.DOCUMENT: 0.8,
}
"""Confidence factor by voice: an assistant may be wrong about its user, and a document is seldom about the user."""

TEMPORARY_FACTOR = 0.5
"""Stability factor of a word that limits a statement to now."""

ANAPHORA_FACTOR = 0.7
"""Confidence factor of a pronoun at the beginning, which refers to the turn before."""

_ANAPHORA = re.compile(
    r"^ (?:and |but |so )?(?:it|it's|she|he|they|that|that's|this|these|those|er|sie|es|das ist|elle|il) "
)

_TEMPORARY = re.compile(
    r" (?:today|tonight|currently|for now|right now|at the moment|this (?:week|morning|evening|afternoon|weekend)|"
    r"tomorrow|temporarily|for the time being|heute|gerade|derzeit|momentan|vorerst|morgen|hoy|ahora mismo|de momento|"
    r"esta semana|aujourd'hui|en ce moment|pour l'instant|cette semaine) "
)


def item_confidence(kind: ItemKind | None, voice: Voice, spaced: str) -> float:
    """Return how certain an item is, given its evidence."""
    anaphora = ANAPHORA_FACTOR if kind and _ANAPHORA.search(spaced) else 1.0
    return round(KIND_RATINGS[kind].confidence * VOICE_FACTOR[voice] * anaphora, 3)


def item_stability(kind: ItemKind | None, spaced: str) -> float:
    """Return how likely an item still holds later."""
    return KIND_RATINGS[kind].stability * (TEMPORARY_FACTOR if _TEMPORARY.search(spaced) else 1.0)


class ExtractedItem(NamedTuple):
    """One item with its span of code points, `end` excluded, in the turn's text or in that of `resource`.

    `text` is the text of the span, or a model's paraphrase. `times` are the mentioned dates as ISO dates. `replaces`
    names earlier items that are outdated, as found by a language model. `may_supersede` tells whether its voice may
    supersede earlier items. `mode` is its register, as found by a language model, if it differs from its turn's; such
    an item, and others of the same sentence, stand `instead_of` the rules' item. Page and seconds are those in a file.
    """

    kind: ItemKind | None
    type: MemoryType
    text: str
    start: int
    end: int
    resource: str | None
    confidence: float
    stability: float
    claim: str | None
    entities: tuple[str, ...]
    times: tuple[str, ...]
    replaces: tuple[str, ...] = ()
    may_supersede: bool = True
    mode: str | None = None
    instead_of: str | None = None
    page: int | None = None
    start_s: float | None = None
    end_s: float | None = None


class SourceText(NamedTuple):
    """A text to search for items: that of a turn or of one of its resources, and its voice."""

    memory: Memory
    text: str
    resource: str | None
    voice: Voice


def build_extracted_item(
    source: SourceText, span: Span, kind: ItemKind | None, text: str | None = None, confidence: float | None = None
) -> ExtractedItem:
    """Build the item of a span; `text` and `confidence` default to those of the rules."""
    text = source.text[span.start : span.end] if text is None else text
    spaced, claim = parse_sentence(text).spaced, None
    # A document makes no claim, since it may be old or about something else.
    if kind in CLAIM_KINDS and source.voice is not Voice.DOCUMENT:
        claim = extract_claim(text, fold(source.memory.speaker or source.memory.role or "").strip())
    return ExtractedItem(
        kind=kind,
        type=KIND_RATINGS[kind].type,
        text=text,
        start=span.start,
        end=span.end,
        resource=source.resource,
        confidence=item_confidence(kind, source.voice, spaced) if confidence is None else confidence,
        stability=item_stability(kind, spaced),
        claim=claim,
        entities=extract_entities(text),
        times=find_dates(text, source.memory.occurred_at),
        may_supersede=source.voice in REPLACING_VOICES,
    )


MAX_ITEM_CHARS = 500
"""A longer sentence is a list or a log."""

MIN_ITEM_WORDS, MIN_CONTENT_WORDS = 3, 2
"""Minimum words of an item, and minimum words without stop words, except of a fact: `We decided that` says little."""

_DASH = re.compile("\u2014|[\u2013-](?=\\s)")
"""A dash separates clauses like a comma."""


def classify_sentence(text: str, *, has_first_person: bool) -> ItemKind | None:
    """Return the kind of item of a sentence; without `has_first_person`, none for facts in the first person."""
    if len(text) > MAX_ITEM_CHARS:
        return None
    text = _DASH.sub(", ", text)
    sentence = parse_sentence(text)
    if len(sentence.words) < MIN_ITEM_WORDS or sentence.is_question:
        return None
    kind = _kind(text, sentence, has_first_person=has_first_person)
    if kind == "fact" or kind is None:
        return kind
    stop_words = stop_words_of(sentence.words)
    content = sum(word not in stop_words and word[0].isalnum() for word in sentence.words)
    return kind if content >= MIN_CONTENT_WORDS else None


def _kind(text: str, sentence: Sentence, *, has_first_person: bool) -> ItemKind | None:
    words, spaced = sentence
    labels = find_cue_labels(sentence)
    if "SPECULATION" in labels:
        labels -= ASSERTIVE
    if is_procedure(spaced):
        return "procedure"
    if kind := kind_of(labels, spaced):
        return kind
    written = written_words(text)
    if "SPECULATION" in labels or len(written) != len(words):
        return None
    if states_fact(words, written, spaced, has_first_person=has_first_person):
        return "fact"
    # A claim is a fact in more languages, and with values in lower case.
    claim = extract_claim(text, "") if has_first_person or not FIRST_PERSON.search(spaced) else None
    return "fact" if claim and (has_first_person or not is_own_claim(claim)) else None


MAX_RULE_ITEMS = 8
"""Maximum items per text by rule: a text with more is a page, and is found by its segments."""

MAX_SEGMENTS = 128
"""Maximum segments of one turn's documents: those of two of the longest resources."""

MAX_DOCUMENT_CHARS = 4 * MAX_PARSED_CHARS
"""Characters of one turn's documents searched for sentences: a turn may have a hundred pages, and each takes about 5 ms
even without a match."""

MIN_OVERLAP_SHARE = 0.5
"""Minimum overlap of two spans of one item, as a share of the shorter span."""


def extract_items(memory: Memory, understanding: Understanding | None = None) -> list[ExtractedItem]:
    """Return all items of a turn, by rules and by a model's understanding, without duplicates."""
    by_model = [] if understanding is None else extract_by_model(memory, understanding)
    return merge_items(extract_by_rules(memory), by_model)


def merge_items(by_rules: Sequence[ExtractedItem], by_model: Sequence[ExtractedItem]) -> list[ExtractedItem]:
    """Return the items of both without duplicates."""
    items: list[ExtractedItem | None] = list(by_rules)
    same_as = [next((n for n, other in enumerate(by_rules) if _is_duplicate(item, other)), None) for item in by_model]
    # A sentence in two registers: the model's parts replace the whole.
    parted = {same for item, same in zip(by_model, same_as, strict=True) if item.mode is not None}
    for item, same in zip(by_model, same_as, strict=True):
        if same is None:
            items.append(item)
        elif same in parted:
            items[same] = None
            items.append(item._replace(instead_of=by_rules[same].text))
        elif (rule := items[same]) is not None:
            # The text of the rules stays, with the higher confidence.
            items[same] = rule._replace(confidence=max(rule.confidence, item.confidence), replaces=item.replaces)
    return [item for item in items if item is not None]


def extract_by_rules(memory: Memory) -> list[ExtractedItem]:
    """Return rule-based items of a turn and its resources, then resource segments; empty for other memories."""
    voice = voice_of(memory)
    if voice is None:
        return []
    from_turn = islice(find_items(SourceText(memory, memory.text, None, voice)), MAX_RULE_ITEMS)
    if not memory.resources:
        return list(from_turn)
    documents = _documents(memory)
    from_documents = chain.from_iterable(map(find_items, _within_limit(documents)))
    segments = (build_extracted_item(source, span, None) for source in documents for span in chunk_text(source.text))
    return [*from_turn, *islice(from_documents, MAX_RULE_ITEMS), *islice(segments, MAX_SEGMENTS)]


def extract_by_model(memory: Memory, understanding: Understanding) -> list[ExtractedItem]:
    """Return the items of a model with a quotation from the turn's text, or else from that of a resource.

    Others are dropped, and so are rules from a voice that may not set any: a tool's output may be anyone's text, and so
    does not replace earlier items either.
    """
    voice = voice_of(memory)
    if voice is None or not understanding.items:
        return []
    by_item: dict[int, ExtractedItem] = {}
    for source in (SourceText(memory, memory.text, None, voice), *_documents(memory)):
        allowed = ALLOWED_KINDS[source.voice]
        for verified in verify_items(understanding, source.text):
            if id(verified.item) not in by_item and (
                verified.item.kind in allowed or verified.item.kind not in RULE_KINDS
            ):
                text = verified.item.text.strip() or None
                extracted = build_extracted_item(
                    source, Span(verified.start, verified.end), verified.item.kind, text, verified.item.confidence
                )
                may_replace = source.voice in REPLACING_VOICES and verified.item.kind in CLAIM_KINDS
                by_item[id(verified.item)] = extracted._replace(
                    replaces=verified.item.replaces if may_replace else (),
                    mode=verified.item.mode if verified.item.mode != understanding.mode else None,
                )
    return [by_item[id(item)] for item in understanding.items if id(item) in by_item]


def _documents(memory: Memory) -> list[SourceText]:
    return [
        SourceText(memory, resource.text, resource.uri, Voice.DOCUMENT)
        for resource in memory.resources
        if resource.text
    ]


def _within_limit(sources: Sequence[SourceText]) -> Iterator[SourceText]:
    """Yield the first sources, up to `MAX_DOCUMENT_CHARS` in all."""
    chars = 0
    for source in sources:
        chars += min(len(source.text), MAX_PARSED_CHARS)
        if chars > MAX_DOCUMENT_CHARS:
            return
        yield source


_FENCE_OPENS = re.compile(r"\s*```[^\n`]*\n")
_FENCE_CLOSES = re.compile(r"^[ \t]*```", re.MULTILINE)


def find_items(source: SourceText, *, has_first_person: bool | None = None) -> Iterator[ExtractedItem]:
    """Yield the lists of steps in a text, then its sentences that are items by themselves.

    `has_first_person` defaults to that of the voice.
    """
    allowed = ALLOWED_KINDS[source.voice]
    if source.voice is Voice.ASSISTANT and len(source.text) > MAX_REPORT_CHARS:
        allowed &= {"procedure"}
    has_first_person = source.voice in FIRST_PERSON_VOICES if has_first_person is None else has_first_person
    step_lists = find_step_lists(source.text) if "procedure" in allowed else []
    yield from (build_extracted_item(source, span, "procedure") for span in step_lists)
    for start, end in sentence_spans(source.text):
        if any(start < other.end and other.start < end for other in step_lists):
            continue
        kind = classify_sentence(source.text[start:end], has_first_person=has_first_person)
        # A procedure has the code that it announces; a list is read as steps.
        announces = kind == "procedure" and source.text[end - 1] == ":"
        last = _code_end(source.text, end) if announces else end
        if kind in allowed and last is not None:
            yield build_extracted_item(source, Span(start, last), kind)


def _code_end(text: str, start: int) -> int | None:
    """Return the end of the fenced code that follows, if it has at most a chunk, else None."""
    opening = _FENCE_OPENS.match(text, start, start + MAX_CHUNK_CHARS)
    closing = opening and _FENCE_CLOSES.search(text, opening.end(), start + MAX_CHUNK_CHARS)
    return closing.end() if closing else None


def _is_duplicate(item: ExtractedItem, other: ExtractedItem) -> bool:
    shared = min(item.end, other.end) - max(item.start, other.start)
    shorter = min(item.end - item.start, other.end - other.start)
    return (item.kind, item.resource) == (other.kind, other.resource) and shared >= max(1, MIN_OVERLAP_SHARE * shorter)
