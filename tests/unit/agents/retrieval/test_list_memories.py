"""`List`: order, pages, filters and summaries over a real lexical index."""

import asyncio
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.retrieval import list_memories
from agents.rules.answer import list_pages
from schemas.failures import Rejected
from schemas.state.memories import Embedding, Memory
from tests.builders.memories import START, made
from tests.harnesses.lists import ListHarness


@pytest.fixture
def lists(tmp_path: Path) -> ListHarness:
    return ListHarness(tmp_path)


def at(microseconds: int) -> datetime:
    return START + timedelta(microseconds=microseconds)


def turns(count: int, time_of: Callable[[int], int], **fields: Any) -> list[Memory]:
    """Return turns at these microseconds; their order by id is not that by time."""
    numbers = random.Random(1).sample(range(10**6), count)
    return [
        made(f"turn {number}", number, memory_id=f"m{numbers[number]:06}", occurred_at=at(time_of(number)), **fields)
        for number in range(count)
    ]


TIMES = {
    "minutes": lambda number: number * 60_000_000,
    "some in a millisecond": lambda number: number * 130,
    "equal": lambda _number: 77,
}


@pytest.mark.parametrize("limit", [1, 7, 100])
@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("max_tied", [10, 1000])
async def test_pages_are_in_the_order_of_exact_times_then_ids(
    lists: ListHarness, limit: int, name: str, max_tied: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_pages, "MAX_TIED_ITEMS", max_tied)
    stored = lists.store(*turns(40, TIMES[name]))
    ordered = [memory.memory_id for memory in sorted(stored, key=lambda each: (each.occurred_at, each.memory_id))]
    assert [each.memory_id for each in await lists.all(order="oldest", limit=limit)] == ordered
    assert [each.memory_id for each in await lists.all(order="newest", limit=limit)] == ordered[::-1]
    assert [each.memory_id for each in await lists.all(contains="TURN", limit=limit)] == ordered[::-1]
    assert (await lists.page(limit=limit)).total == 40


@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize("filters", [{}, {"contains": "turn"}])
async def test_what_was_there_is_shown_once_whatever_happens_meanwhile(
    lists: ListHarness, order: str, filters: dict[str, Any]
) -> None:
    stored = lists.store(*turns(30, TIMES["minutes"]))
    shown = await lists.page(order=order, limit=10, **filters)
    new = turns(40, TIMES["minutes"])[30:]
    lists.store(*(memory.model_copy(update={"memory_id": f"new {n}"}) for n, memory in enumerate(new)))
    lists.store(made("early", 50, occurred_at=at(-1)))
    # Edits that give other times: of one that was shown, of one that was not, and of the last ones of the second page.
    for number, moved_to in ((3, 40), (26, -5), (20, 41), (9, -6)):
        lists.store(stored[number].model_copy(update={"occurred_at": at(moved_to * 60_000_000), "text": "turn edited"}))
    lists.forget(stored[15])
    texts = [item.memory_id for item in shown.items]
    cursor = shown.next
    while cursor:
        page = await lists.page(order=order, limit=10, cursor=cursor, **filters)
        texts += [item.memory_id for item in page.items]
        cursor = page.next
    expected = [memory.memory_id for memory in stored if memory is not stored[15]]
    assert texts == (expected if order == "oldest" else expected[::-1])


async def test_page_goes_on_behind_what_has_gone(lists: ListHarness) -> None:
    stored = lists.store(*turns(6, TIMES["minutes"]))
    first = await lists.page(order="oldest", limit=2)
    for memory in stored[1:4]:
        lists.forget(memory)
    second = await lists.page(order="oldest", limit=2, cursor=first.next)
    assert [item.memory_id for item in second.items] == [stored[4].memory_id, stored[5].memory_id]
    assert second.next is None
    assert second.total == 3


async def test_long_page_ends_early(lists: ListHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_memories, "MAX_PAGE_BYTES", 20_000)
    lists.store(*(made("x" * 9000, number) for number in range(8)))
    page = await lists.page(limit=8)
    assert len(page.items) == 3
    assert len(await lists.all(limit=8)) == 8


async def test_filters_select_and_count(lists: ListHarness) -> None:
    lists.store(
        made("One STRASSE", 0, speaker="Ana", importance=0.7, metadata={"a": [1]}),
        made("two", 1, role="assistant", conversation_id="c2"),
        made("three", 2, project="p2", embedding=Embedding(status="failed")),
        made("four", 3, superseded_by="m1"),
        made("fact one", 4, origin="extracted", type="semantic", conversation_id="c2", role="assistant"),
        made("gist one", 5, origin="distilled", type="semantic", conversation_id=None, role=None, turn_id=None),
        made("stranger", 6, user="ben"),
    )

    async def selected(**fields: Any) -> set[str]:
        page = await lists.page(**fields)
        assert page.total == len(page.items)
        return {item.text for item in page.items}

    assert await selected() == {"One STRASSE", "two", "three", "gist one"}
    assert await selected(include_superseded=True) == {"One STRASSE", "two", "three", "gist one", "four"}
    assert await selected(role="assistant") == {"two"}
    assert await selected(conversation_id="c2") == {"two"}
    assert await selected(conversation_id="unknown") == set()
    assert await selected(contains="stra\u00dfe") == {"One STRASSE"}
    assert await selected(contains="") == await selected()
    assert await selected(project="p2") == {"three"}
    assert await selected(project=["p2", "default"]) == await selected()
    assert await selected(embedding_status="failed") == {"three"}
    assert await selected(embedding_status="ready") == set()
    assert await selected(types=["semantic"]) == {"fact one", "gist one"}
    assert await selected(types=["semantic", "episodic"]) == await selected()
    assert await selected(types=["semantic"], conversation_id="c2") == {"fact one"}
    assert await selected(types=["semantic"], role="assistant") == {"fact one"}
    assert await selected(types=["procedural"]) == set()
    assert await selected(types=[]) == set()
    assert await selected(types=["working"]) == set()
    working = await lists.page(types=["working"], conversation_id="c2")
    assert [(item.text, item.type) for item in working.items] == [("two", "working")]
    assert await selected(since=made("", 1).occurred_at.isoformat(), until=made("", 2).occurred_at.isoformat()) == {
        "two"
    }
    assert await selected(mode=["general"]) == await selected(mode="*") == await selected()
    assert await selected(user="nobody") == set()


async def test_undeclared_mode_is_refused(lists: ListHarness) -> None:
    with pytest.raises(Rejected, match="unknown_mode"):
        await lists.page(mode=["general", "never"])
    with pytest.raises(Rejected, match="invalid_value"):
        await lists.page(mode=[])


async def test_memory_is_shown_with_its_record(lists: ListHarness) -> None:
    lists.store(made("One", 0, speaker="Ana", importance=0.7, metadata={"a": [1]}))
    [shown] = (await lists.page()).model_dump(mode="json")["items"]
    assert shown == {
        "memory_id": made("", 0).memory_id,
        "turn_id": "t-0",
        "conversation_id": "c1",
        "scope": {"user_id": "ana", "project_id": "default"},
        "type": "episodic",
        "mode": "general",
        "mode_source": "fallback",
        "role": "user",
        "speaker": "Ana",
        "text": "One",
        "occurred_at": "2026-02-01T10:00:00Z",
        "accepted_at": "2026-02-01T10:00:00Z",
        "evidence": [{"turn_id": "t-0", "start": 0, "end": 3}],
        "version": 1,
        "embedding_status": "pending",
        "importance": 0.7,
        "metadata": {"a": [1]},
        "superseded_by": None,
    }


async def test_conversations_of_the_same_name_are_apart_by_project(lists: ListHarness) -> None:
    lists.store(
        made("one", 0, speaker="Ana"),
        made("two", 1, speaker="Ben", mode="code"),
        made("three", 2, project="p2"),
        made("four", 3, conversation_id="c2", superseded_by="m"),
        made("gist", 9, origin="distilled", type="semantic", conversation_id=None),
    )
    page = await lists.page("conversations")
    assert page.total == 2
    assert [item.model_dump() for item in page.items] == [
        {
            "conversation_id": "c1",
            "title": "three",
            "scope": {"user_id": "ana", "project_id": "p2"},
            "turns": 1,
            "first": "2026-02-01T10:02:00Z",
            "last": "2026-02-01T10:02:00Z",
            "speakers": [],
            "modes": {"general": 1},
        },
        {
            "conversation_id": "c1",
            "title": "one",
            "scope": {"user_id": "ana", "project_id": "default"},
            "turns": 2,
            "first": "2026-02-01T10:00:00Z",
            "last": "2026-02-01T10:01:00Z",
            "speakers": ["Ana", "Ben"],
            "modes": {"code": 1, "general": 1},
        },
    ]
    [only] = (await lists.page("conversations", contains="TWO")).items
    assert only.turns == 1


async def title_in(lists: ListHarness, *turns: Memory, **fields: Any) -> str | None:
    lists.store(*turns)
    [conversation] = (await lists.page("conversations", **fields)).items
    title: str | None = conversation.title
    return title


async def test_an_imports_title_is_the_title_of_its_conversation(lists: ListHarness) -> None:
    assert await title_in(lists, made("Hello", 0), made("Hi", 1, metadata={"title": "Leaking sink"})) == "Leaking sink"


async def test_a_title_has_the_first_words_of_the_first_user(lists: ListHarness) -> None:
    turns = made("How can I help?", 0, role="assistant"), made(f"# Fix the {'very ' * 20}old sink", 1), made("sink", 2)
    assert await title_in(lists, *turns, contains="sink") == f"Fix the {'very ' * 9}very …"


async def test_projects_count_distilled_memories_too(lists: ListHarness) -> None:
    lists.store(
        made("one", 0),
        made("two", 1, conversation_id="c2"),
        made("gist", 2, origin="distilled", type="semantic", conversation_id=None),
        made("fact", 3, origin="extracted", type="semantic"),
        made("three", 4, project="p2"),
    )
    projects = [(each.scope["project_id"], each.memories, each.conversations) for each in await lists.all("projects")]
    assert projects == [("p2", 1, 1), ("default", 3, 2)]
    assert [(entry.memories, entry.conversations) for entry in await lists.all("projects", types=["semantic"])] == [
        (2, 0)
    ]


@pytest.mark.parametrize("order", ["newest", "oldest"])
async def test_conversation_with_a_new_turn_keeps_its_place_in_a_list_that_has_begun(
    lists: ListHarness, order: str
) -> None:
    stored = lists.store(*(made("turn", number, conversation_id=f"c{number}") for number in range(9)))
    expected = [turn.conversation_id for turn in stored]
    first = await lists.page("conversations", order=order, limit=3)
    for conversation in ("c1", "c7", "c9"):
        lists.store(made("late", 20, conversation_id=conversation))
    names = [item.conversation_id for item in first.items]
    cursor = first.next
    while cursor:
        page = await lists.page("conversations", order=order, limit=3, cursor=cursor)
        names += [item.conversation_id for item in page.items]
        cursor = page.next
    assert names == (expected if order == "oldest" else expected[::-1])
    assert (await lists.page("conversations")).total == 10


async def test_texts_are_searched_in_slices(lists: ListHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_memories, "SLICE_S", 0.0)
    lists.store(*turns(50, TIMES["minutes"]))
    searching = asyncio.create_task(lists.page(contains="turn 4", limit=3))
    pauses = 0
    while not searching.done():
        await asyncio.sleep(0)
        pauses += 1
    assert searching.result().total == 11
    assert pauses > 50


async def test_later_pages_search_no_more_texts_than_they_show(lists: ListHarness) -> None:
    lists.store(*turns(200, TIMES["minutes"]))
    first = await lists.page(contains="turn", limit=5)
    searched: list[str] = []
    lists.on_excerpt = searched.append
    second = await lists.page(contains="turn", limit=5, cursor=first.next)
    assert len(second.items) == 5
    assert second.total == 200
    assert len(set(searched)) < 100


@pytest.mark.parametrize("what", ["memories", "conversations"])
async def test_a_search_of_texts_reads_whole_records_of_its_page_alone(lists: ListHarness, what: str) -> None:
    lists.store(*turns(200, TIMES["minutes"]))
    read: list[str] = []
    lists.on_read = read.append
    await lists.page(what, contains="turn", limit=5)
    assert len(set(read)) <= 6
