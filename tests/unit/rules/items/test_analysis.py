from collections.abc import Sequence

import pytest
from modestream_client.vocabulary import ItemKind

from agents.rules.items.analysis import MAX_FILE_CHARS, MAX_FILE_ITEMS, analyse, file_parts
from agents.rules.items.extracting import ExtractedItem
from agents.rules.items.item_merging import build_item
from agents.rules.memory.resources import derive_part_id, part_support
from schemas.state.files import FileText, Segment
from schemas.state.memories import Memory, ReadMemory, Resource
from schemas.state.understanding import FoundItem, Understanding
from tests.builders.memories import made

URI = "file:" + "0" * 64
DECISION = "We decided to use PostgreSQL for the ledger."


def with_file(
    *pages: str, reader: str = "text", role: str = "user", text: str = "Here it is."
) -> tuple[Memory, ReadMemory]:
    """Return a turn with a file of a part a page, and the reader of its memories."""
    whole = "\n\n".join(pages)
    starts = [whole.index(page) for page in pages]
    segments = tuple(
        Segment(start, start + len(page), number)
        for number, (start, page) in enumerate(zip(starts, pages, strict=True), 1)
    )
    resource = Resource(
        uri=URI, name="notes.txt", status="ready", reader=reader, characters=len(whole), parts=len(segments)
    )
    turn = made(text, role=role, resources=(resource,))
    read = FileText(whole, reader, segments)
    ids = [derive_part_id(turn.memory_id, URI, number) for number in range(len(segments))]
    parts = {
        part_id: build_item(part_id, [part_support(turn, URI, read, number)], turn, None)
        for number, part_id in enumerate(ids)
    }
    return turn, parts.get


def items(turn: Memory, read: ReadMemory, understanding: Understanding | None = None) -> list[ExtractedItem]:
    return analyse(turn, None, understanding, read).items


def kinds(*pages: str, reader: str = "text", role: str = "user") -> list[ItemKind | None]:
    return [item.kind for item in items(*with_file(*pages, reader=reader, role=role))]


def answer(*found: tuple[ItemKind, str], confidence: float = 0.9) -> Understanding:
    return Understanding(
        items=tuple(FoundItem(kind=kind, text=quote, quote=quote, confidence=confidence) for kind, quote in found)
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (DECISION, "decision"),
        ("Our API must answer within 200 ms.", "constraint"),
        ("- We chose Lisbon for the offsite.\n- Bring the badges.", "decision"),
        ("I live in Lisbon.", "fact"),
        ("To deploy, run make release.", "procedure"),
    ],
)
def test_note_of_a_user_has_items(text: str, kind: ItemKind) -> None:
    assert kinds(text) == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "Redistributions in binary form must reproduce the above copyright.",
        "The total number of sentence pairs is above 1 billion sentences.",
        "Outbound topics must be mocked.",
        "To prevent this, we have made it clear that any patent must be licensed for\neveryone's free use.",
        "and so we decided to use PostgreSQL for the ledger.",
        "Permission is granted\nto use, copy, modify, merge, publish, distribute and/or sell\ncopies.",
        "I prefer tea.",
        "Never send the address to anybody.",
    ],
)
def test_what_is_not_surely_the_users_own_statement_is_no_item(text: str) -> None:
    assert kinds(text) == []


@pytest.mark.parametrize("reader", ["pdf", "html", "e-mail", "csv", "ocr", "transcribe", "pptx"])
def test_rules_find_nothing_in_what_others_mostly_write(reader: str) -> None:
    assert kinds(DECISION, reader=reader) == []


@pytest.mark.parametrize("role", ["assistant", "tool", "system"])
def test_rules_find_nothing_in_a_file_of_another_role(role: str) -> None:
    assert kinds(DECISION, role=role) == []


def test_a_long_text_is_no_note() -> None:
    assert kinds(DECISION, "The train was late again. " * (MAX_FILE_CHARS // 20)) == []


def test_a_note_full_of_statements_has_few_items() -> None:
    pages = [f"We decided to use crate number {number} for the ledger." for number in range(3 * MAX_FILE_ITEMS)]
    assert len(items(*with_file(*pages))) == MAX_FILE_ITEMS


def test_item_of_a_file_names_its_page_and_its_characters() -> None:
    turn, read = with_file("The train was late.", DECISION)
    [found] = items(turn, read)
    assert found.page == 2
    assert found.resource == URI
    whole = f"The train was late.\n\n{DECISION}"
    assert whole[found.start : found.end] == DECISION


def test_item_of_a_file_claims_nothing() -> None:
    [found] = items(*with_file("I live in Lisbon."))
    assert found.claim is None
    assert not found.may_supersede


def test_file_that_is_not_read_has_no_items() -> None:
    turn, read = with_file(DECISION)
    pending = turn.resources[0].model_copy(update={"status": "pending"})
    assert items(turn.model_copy(update={"resources": (pending,)}), read) == []


def test_model_finds_items_in_a_file_of_any_kind() -> None:
    quote = "the budget is frozen until October"
    turn, read = with_file("Minutes of Monday.", f"It was said that {quote}.", reader="pdf")
    [found] = items(turn, read, answer(("constraint", quote)))
    assert found.kind == "constraint"
    assert found.text == quote
    assert found.page == 2


@pytest.mark.parametrize("kind", ["preference", "safety", "correction", "goal", "open_question", "error"])
def test_model_finds_in_a_file_no_rule_or_aim_of_the_user(kind: ItemKind) -> None:
    turn, read = with_file("Never write to the ledger by hand.", reader="pdf")
    assert items(turn, read, answer((kind, "Never write to the ledger by hand."))) == []


def test_model_that_is_unsure_finds_nothing_in_a_file() -> None:
    turn, read = with_file("The budget is frozen.", reader="pdf")
    assert items(turn, read, answer(("fact", "The budget is frozen."), confidence=0.4)) == []


def test_rules_and_model_find_one_item_in_the_same_words() -> None:
    turn, read = with_file(DECISION)
    [found] = items(turn, read, answer(("decision", DECISION)))
    assert found.confidence == 0.9


def test_words_that_the_turn_says_too_are_an_item_of_the_turn() -> None:
    turn, read = with_file(DECISION, reader="pdf", text=DECISION)
    [found] = items(turn, read, answer(("decision", DECISION)))
    assert found.resource is None


def test_an_analysis_counts_until_a_file_is_read() -> None:
    turn, read = with_file(DECISION)
    pending = turn.resources[0].model_copy(update={"status": "pending", "parts": 0})
    before = analyse(turn.model_copy(update={"resources": (pending,)}), None, None, read)
    assert [item.kind for item in analyse(turn, before, None, read).items] == ["decision"]


def test_the_beginnings_of_all_files_are_searched() -> None:
    turn, read = with_file(*["The train was late again. " * 40] * 30, reader="pdf")
    texts: Sequence[str] = [part.text for part in file_parts(turn, read)]
    assert 0 < sum(map(len, texts)) <= MAX_FILE_CHARS
