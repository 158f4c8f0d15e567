"""Long replies in a context: the passages that answer."""

from modestream_client.hits import Passage

from agents.rules.text.passages import cut_passages
from schemas.state.memories import Memory
from tests.builders.memories import made
from tests.harnesses.contexts import ContextHarness, contents, memories

PARAGRAPHS = [f"Step {number}: water the tulips, and wait for a day. " * 7 for number in range(10)]
ANSWER = "The vault opens with the code Alabaster. " * 8


def long_turn(number: int, role: str = "assistant", name: str = "") -> Memory:
    """Return a turn of 4,000 characters, whose sixth passage has the answer."""
    text = "\n\n".join([*PARAGRAPHS[:5], f"{name} {ANSWER}".strip(), *PARAGRAPHS[5:]])
    return made(text, number, role=role, conversation_id="c2")


def middle_turn(number: int) -> Memory:
    """Return a reply of 1,400 characters, whose second passage has the answer."""
    text = "\n\n".join([PARAGRAPHS[0], f"Vault {number}. {ANSWER}".strip(), *PARAGRAPHS[1:3]])
    return made(text, number, role="assistant", conversation_id="c2")


def found(library: ContextHarness, *turns: Memory) -> None:
    """Store turns and let the search find them, each by the passage with the answer."""
    library.store(*turns)
    library.search.memories = list(turns)
    for turn in turns:
        span = next(
            passage for passage in cut_passages(turn.text) if "Alabaster" in turn.text[passage.start : passage.end]
        )
        library.search.passages[turn.memory_id] = (Passage(start=span.start, end=span.end, score=0.6),)


async def test_a_long_reply_is_shown_by_the_passage_that_answers(library: ContextHarness) -> None:
    found(library, long_turn(0))
    result = await library.assemble_context(budget_tokens=500)
    assert contents(result) == [f"\u2026 {ANSWER.strip()} \u2026"]
    assert memories(result)[0]["excerpt"]


async def test_a_long_reply_is_whole_where_room_is_left(library: ContextHarness) -> None:
    found(library, reply := long_turn(0))
    result = await library.assemble_context(budget_tokens=8000)
    assert contents(result) == [reply.text]
    assert result.tokens["total"] <= 8000


async def test_passages_of_replies_come_before_a_whole_one(library: ContextHarness) -> None:
    found(library, *(long_turn(number, name=f"Vault {number}.") for number in range(20)))
    result = await library.assemble_context(budget_tokens=8000)
    assert len(memories(result)) == 20
    assert all("Alabaster" in content for content in contents(result))


async def test_the_first_replies_are_whole_before_others_are_shown(library: ContextHarness) -> None:
    replies = [middle_turn(number) for number in range(40)]
    found(library, *replies)
    result = await library.assemble_context(budget_tokens=3000)
    assert [reply.text for reply in replies if reply.text in contents(result)] == [reply.text for reply in replies[:3]]


async def test_a_first_reply_that_takes_too_much_room_stays_cut(library: ContextHarness) -> None:
    replies = [middle_turn(number) for number in range(40)]
    found(library, *replies)
    result = await library.assemble_context(budget_tokens=700)
    assert not [reply for reply in replies if reply.text in contents(result)]


async def test_a_long_turn_of_the_user_is_whole(library: ContextHarness) -> None:
    found(library, turn := long_turn(0, role="user"))
    assert contents(await library.assemble_context(budget_tokens=6000)) == [turn.text]


async def test_a_turn_of_the_user_that_takes_too_much_room_is_cut_to_the_same_passages(library: ContextHarness) -> None:
    found(library, long_turn(0, role="user"))
    assert contents(await library.assemble_context(budget_tokens=500)) == [f"\u2026 {ANSWER.strip()} \u2026"]


async def test_a_reply_of_the_recent_window_is_whole(library: ContextHarness) -> None:
    reply = made("\n\n".join(PARAGRAPHS), 0, role="assistant")
    library.store(reply)
    assert contents(await library.assemble_context(budget_tokens=6000)) == [reply.text]


async def test_a_pinned_reply_is_whole(library: ContextHarness) -> None:
    found(library, *(long_turn(number, name=f"Vault {number}.") for number in range(20)))
    pinned = library.search.memories[-1]
    result = await library.assemble_context(budget_tokens=5000, pins=[pinned.memory_id])
    assert pinned.text in contents(result)
