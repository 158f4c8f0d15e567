"""The hits of long turns: which passages they show."""

from typing import Any

from modestream_client.hits import Evidence, Hit, Passage

from schemas.state.memories import Embedding, Memory, Resource
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.items import item_of, with_items
from tests.builders.memories import made
from tests.harnesses.retrieval import RetrievalHarness

FILLER = "There is a lot to say about gardens, and most of it was said before by somebody with more patience. " * 3
PARAGRAPHS = (
    f"Tulips want a cold winter. {FILLER}",
    f"Roses are pruned in February. {FILLER}",
    f"The compost heap belongs in the shade behind the shed. {FILLER}",
    f"A hedgehog needs a gap under the fence. {FILLER}",
)
REPLY = "\n\n".join(paragraph.strip() for paragraph in PARAGRAPHS)
COMPOST = "where does the compost heap belong?"


def reply(text: str = REPLY, number: int = 0, **fields: Any) -> Memory:
    return made(text, number, role="assistant", **fields)


async def first(library: RetrievalHarness, query: str = COMPOST, **fields: Any) -> Hit:
    return (await library.ask(query, **fields))[0].hits[0]


def shown(hit: Hit) -> list[str]:
    return [hit.text[passage.start : passage.end] for passage in hit.passages]


async def test_a_long_reply_shows_the_passage_that_answers(library: RetrievalHarness) -> None:
    await library.remember(reply())
    assert shown(await first(library))[0] == PARAGRAPHS[2].strip()


async def test_a_long_reply_shows_three_passages(library: RetrievalHarness) -> None:
    await library.remember(reply())
    assert len((await first(library)).passages) == 3


async def test_passages_come_best_first(library: RetrievalHarness) -> None:
    await library.remember(reply())
    scores = [passage.score for passage in (await first(library)).passages]
    assert scores == sorted(scores, reverse=True)


async def test_a_question_about_something_else_shows_another_passage(library: RetrievalHarness) -> None:
    await library.remember(reply())
    assert shown(await first(library, "what does a hedgehog need?"))[0] == PARAGRAPHS[3].strip()


async def test_a_short_turn_has_no_passages_on_the_wire(library: RetrievalHarness) -> None:
    await library.remember(made("The compost heap belongs in the shade."))
    assert "passages" not in (await first(library)).model_dump()


async def test_the_evidence_of_a_long_reply_is_its_whole_text(library: RetrievalHarness) -> None:
    await library.remember(reply())
    assert (await first(library)).evidence == (Evidence(turn_id="t-0", start=0, end=len(REPLY)),)


async def test_late_interaction_names_passages_too(words: SqliteLexicalIndex) -> None:
    library = RetrievalHarness(words, has_tokens=True)
    await library.remember(reply())
    assert shown(await first(library))[0] == PARAGRAPHS[2].strip()


async def test_an_edit_changes_the_passages(library: RetrievalHarness) -> None:
    [memory] = await library.remember(reply())
    moved = "\n\n".join(
        [PARAGRAPHS[2].strip(), *(paragraph.strip() for paragraph in PARAGRAPHS if paragraph != PARAGRAPHS[2])]
    )
    await library.remember(memory.model_copy(update={"text": moved}))
    assert (await first(library)).passages[0].start == 0


async def test_vectors_of_a_replaced_text_say_nothing_about_its_passages(library: RetrievalHarness) -> None:
    [memory, _] = await library.remember(reply(), made("Dinner was soup.", 1))
    moved = "\n\n".join(
        [PARAGRAPHS[2].strip(), *(paragraph.strip() for paragraph in PARAGRAPHS if paragraph != PARAGRAPHS[2])]
    )
    library.store(memory.model_copy(update={"text": moved, "embedding": Embedding(status="pending")}))
    assert [passage.score for passage in (await first(library)).passages] == [1.0, 0.0, 0.0]


async def test_an_edit_to_a_short_text_leaves_no_passages(library: RetrievalHarness) -> None:
    [memory] = await library.remember(reply())
    await library.remember(memory.model_copy(update={"text": "The compost heap belongs in the shade."}))
    assert (await first(library)).passages == ()


async def test_without_vectors_passages_are_found_by_words(library: RetrievalHarness) -> None:
    await library.remember(reply())
    library.vectors.down()
    assert shown(await first(library))[0] == PARAGRAPHS[2].strip()


async def test_a_text_of_a_resource_is_no_passage_that_is_shown(library: RetrievalHarness) -> None:
    picture = Resource(uri="file:a", media_type="image/png", text="a compost heap that belongs in a museum")
    text = "\n\n".join(paragraph.strip() for paragraph in PARAGRAPHS if paragraph != PARAGRAPHS[2])
    await library.remember(reply(text, resources=(picture,)))
    assert all(passage.end <= len(text) for passage in (await first(library)).passages)


async def test_offsets_of_passages_count_code_points(library: RetrievalHarness) -> None:
    text = "\n\n".join(f"\U0001f382 {paragraph.strip()}" for paragraph in PARAGRAPHS)
    await library.remember(reply(text))
    assert shown(await first(library))[0] == f"\U0001f382 {PARAGRAPHS[2].strip()}"


async def test_a_long_item_has_no_passages(library: RetrievalHarness) -> None:
    turn = reply()
    item = item_of(turn, text=REPLY, kind="fact")
    await library.remember(with_items(turn, item), item)
    assert [hit.passages for hit in (await library.ask(COMPOST, types=["semantic"]))[0].hits] == [()]


async def test_a_long_summary_has_no_passages(library: RetrievalHarness) -> None:
    fields: dict[str, Any] = {"turn_id": None, "role": None, "origin": "distilled", "type": "semantic"}
    await library.remember(made(REPLY, **fields))
    assert (await first(library)).passages == ()


async def test_long_replies_in_several_modes_show_their_passages(library: RetrievalHarness) -> None:
    await library.remember(reply(), made("Dinner was soup.", 1))
    result, _ = await library.ask(COMPOST, mode="*")
    assert shown(result.hits[0])[0] == PARAGRAPHS[2].strip()


async def test_equal_questions_show_equal_passages(library: RetrievalHarness) -> None:
    await library.remember(reply())
    seen: list[tuple[Passage, ...]] = [(await first(library)).passages for _ in range(2)]
    assert seen[0] == seen[1]
