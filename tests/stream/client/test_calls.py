"""One suite over both clients: the same results, the same errors, and reading after any client's writes."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest
from modestream_client import HttpMemoryClient, MemoryCalls, MemoryServiceError, Written

from tests.worlds.in_memory_client import client_of
from tests.worlds.in_memory_pipeline import InMemoryPipeline

NAMES = ["a/b", "50% ü", "..", "?x=1&y#z", "+"]
"""Names that a path could take for something else."""


async def test_turn_and_its_hit_are_typed(memory: MemoryCalls) -> None:
    said = await memory.remember(
        "The deploy target is fly.io now.",
        speaker="Ana",
        occurred_at=datetime(2026, 3, 1, 9, 30, tzinfo=UTC),
        turn_id="t-17",
        metadata={"source": "chat"},
    )
    assert said.turn_id == "t-17"
    assert said.version == 1
    assert said.duplicate is False
    assert Written.parse(said.read_after) == (said.partition, said.offset)
    answer = await memory.retrieve("where do we deploy?", explain=True, since="2026-01-01T00:00:00Z")
    [hit] = answer.hits
    assert hit.memory_id == said.memory_id
    assert hit.speaker == "Ana"
    assert hit.occurred_at == "2026-03-01T09:30:00Z"
    assert hit.scores is not None
    record = await memory.get_memory(hit.memory_id)
    assert record.text == hit.text
    assert record.metadata == {"source": "chat"}
    assert record.versions[0].current is True


async def test_hit_of_a_long_turn_names_the_passage_that_answers(memory: MemoryCalls) -> None:
    filler = "There is a lot to say about gardens, and most of it was said before. " * 4
    paragraphs = [f"{text} {filler}".strip() for text in ("Roses like sun.", "Compost belongs in the shade.", "Water.")]
    await memory.remember("\n\n".join(paragraphs), role="assistant")
    [hit] = (await memory.retrieve("where does the compost belong?")).hits
    assert hit.text[hit.passages[0].start : hit.passages[0].end] == paragraphs[1]


async def test_edit_and_duplicate_are_told_apart(memory: MemoryCalls) -> None:
    await memory.remember("The kettle is blue.", turn_id="t")
    assert (await memory.remember("The kettle is blue.", turn_id="t")).duplicate
    edited = await memory.remember("The kettle is red.", turn_id="t")
    assert edited.version == 2
    assert edited.duplicate is False


async def test_warnings_come_with_the_answer(memory: MemoryCalls) -> None:
    await memory.declare_mode("journal", "general")
    await memory.remember("I was afraid of the move.", mode="journal")
    await memory.remember("I was afraid of the dog.", mode="general")
    assert "cross_mode" in {warning.code for warning in (await memory.retrieve("afraid", mode="*")).warnings}
    context = await memory.assemble("afraid", pins=["no such memory"])
    assert "unknown_pin" in {warning.code for warning in context.warnings}


async def test_another_clients_write_is_read_after(memory: MemoryCalls, pipeline: InMemoryPipeline) -> None:
    written = await client_of(pipeline).remember("The kettle is blue.")
    found = await memory.retrieve("kettle", read_after=written.read_after)
    assert [hit.text for hit in found.hits] == ["The kettle is blue."]
    foreign = Written((written.partition + 1) % 4, 0).read_after
    for read in (memory.retrieve("x", read_after=foreign), memory.list_memories(read_after=foreign)):
        with pytest.raises(MemoryServiceError) as refused:
            await read
        assert refused.value.code == "invalid_value"
        assert refused.value.field == "read_after"


async def test_users_are_asked_together_and_never_mixed_up(memory: MemoryCalls) -> None:
    for user in ("ana", "ben"):
        await memory.remember(f"The kettle of {user} is blue.", user_id=user)
    merged = await memory.retrieve("kettle", users=["ana", "ben"])
    assert {hit.scope["user_id"] for hit in merged.hits} == {"ana", "ben"}
    assert (await memory.list_memories(user_id="carla")).total == 0


async def test_projects_are_one_several_or_all(memory: MemoryCalls) -> None:
    for project in ("p1", "p2", "p3"):
        await memory.remember("The kettle is blue.", project_id=project)
    assert len((await memory.retrieve("kettle", projects=["p1", "p2"])).hits) == 2
    assert {project.scope["project_id"] async for project in memory.iter_projects(page_size=2)} == {"p1", "p2", "p3"}
    assert (await memory.list_memories(projects="p1")).total == 1
    assert (await memory.list_memories()).total == 0


async def test_lists_are_filtered_and_paged(memory: MemoryCalls) -> None:
    for hour in range(5):
        await memory.remember(
            f"Remark {hour}", occurred_at=f"2026-03-01T0{hour}:00:00Z", conversation_id=f"c{hour % 2}", role="assistant"
        )
    await memory.remember("A question?", occurred_at="2026-03-02T00:00:00Z", conversation_id="c0")
    texts = [each.text async for each in memory.iter_memories(page_size=2, order="oldest", role="assistant")]
    assert texts == [f"Remark {hour}" for hour in range(5)]
    page = await memory.list_memories(types=["episodic"], contains="REMARK", since="2026-03-01T03:00:00Z")
    assert page.total == 2
    assert [item.text for item in page.items] == ["Remark 4", "Remark 3"]
    assert [conversation.turns async for conversation in memory.iter_conversations()] == [4, 2]


async def test_any_name_can_be_a_user_a_project_and_a_conversation(memory: MemoryCalls) -> None:
    for name in NAMES:
        await use_name(memory, name)


async def use_name(memory: MemoryCalls, name: str) -> None:
    """Write, read and forget under a name."""
    said = await memory.remember(
        "The kettle is blue.", conversation_id=name, turn_id=name, user_id=name, project_id=name
    )
    assert said.memory_id is not None
    assert (await memory.get_memory(said.memory_id, user_id=name, project_id=name)).conversation_id == name
    assert (await memory.forget(conversation_id=name, user_id=name, project_id=name)).forgotten == 1
    await memory.declare_category(name, "odd names", user_id=name, project_id=name)
    assert (await memory.get_category(name, user_id=name, project_id=name)).name == name
    assert (await memory.forget(project=True, user_id=name, project_id=name)).forgotten == 0
    assert (await memory.forget(user=True, user_id=name)).forgotten == 0


async def test_turn_is_forgotten_by_its_own_id(memory: MemoryCalls) -> None:
    await memory.remember("The kettle is blue.", conversation_id="c", turn_id="t1")
    await memory.remember("The lamp is red.", conversation_id="c", turn_id="t2")
    assert (await memory.forget(conversation_id="c", turn_id="t1")).forgotten == 1
    assert (await memory.forget(conversation_id="c", turn_id="t1")).forgotten == 0
    assert [each.text async for each in memory.iter_memories()] == ["The lamp is red."]


async def test_memories_that_are_not_there_are_skipped_when_several_move(memory: MemoryCalls) -> None:
    await memory.declare_mode("journal", "general")
    said = await memory.remember("I was afraid.")
    assert await memory.set_memory_modes([str(said.memory_id), "missing"], "journal") == 1
    with pytest.raises(MemoryServiceError) as refused:
        await memory.set_memory_modes(["missing"], "journal")
    assert refused.value.code == "not_found"


async def test_long_runs_answer_as_short_ones(memory: MemoryCalls) -> None:
    await memory.remember("The kettle is blue.")
    assert (await memory.run_job("rebuild", timeout=90)).processed == 1
    assert (await memory.consolidate(timeout=90)).created == ()


REFUSED: dict[str, tuple[Callable[[MemoryCalls], Awaitable[object]], str, str | None]] = {
    "empty text": (lambda memory: memory.remember(""), "invalid_value", "content"),
    "long text": (lambda memory: memory.remember("x" * 32_769), "too_large", "content"),
    "unknown mode of a turn": (lambda memory: memory.remember("x", mode="never"), "unknown_mode", "mode"),
    "unknown mode of a question": (lambda memory: memory.retrieve("x", mode="never"), "unknown_mode", "mode"),
    "too many hits": (lambda memory: memory.retrieve("x", top_k=101), "invalid_value", "top_k"),
    "small budget": (lambda memory: memory.assemble("x", budget_tokens=5), "invalid_value", "budget_tokens"),
    "no cursor": (lambda memory: memory.list_memories(cursor="nonsense"), "invalid_value", "cursor"),
    "unknown embedder": (lambda memory: memory.declare_mode("m", "never"), "invalid_value", "arguments.embedder"),
    "mode that exists": (lambda memory: memory.rename_mode("general", "other"), "conflict", None),
    "missing memory": (lambda memory: memory.get_memory("missing"), "not_found", None),
    "missing category": (lambda memory: memory.get_category("missing"), "not_found", None),
}  # fmt: skip


async def test_errors_have_the_same_code_and_field(memory: MemoryCalls) -> None:
    for name, (call, code, field) in REFUSED.items():
        with pytest.raises(MemoryServiceError) as refused:
            await call(memory)
        assert refused.value.code == code, name
        assert field is None or refused.value.field == field, name


async def test_principal_is_of_kafka_alone(memory: MemoryCalls) -> None:
    if isinstance(memory, HttpMemoryClient):
        with pytest.raises(ValueError, match="key"):
            await memory.remember("x", principal="ana-app")
    else:
        assert (await memory.remember("x", principal="ana-app")).version == 1


async def test_intention_of_the_whole_user_is_set_and_shown_in_a_project(memory: MemoryCalls) -> None:
    await memory.set_intention(goals=["finish the thesis"], project_id="*")
    shown = await memory.get_intention(project_id="p1")
    assert shown.whole_user is not None
    assert [goal.text for goal in shown.whole_user.goals] == ["finish the thesis"]


async def test_categories_are_suggested(memory: MemoryCalls) -> None:
    await memory.remember("The kettle is blue.")
    assert (await memory.suggest_categories()).suggestions == ()
