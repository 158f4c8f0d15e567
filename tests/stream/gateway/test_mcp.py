"""The tools, over the whole pipeline in memory."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from modestream_client import MemoryTimeout

from gateway.connection_settings import MORE_TOOLS, USUAL_TOOLS
from tests.harnesses.mcp import REVISIONS, answer, error, in_process
from tests.worlds.in_memory_client import InMemoryTransport
from tests.worlds.in_memory_pipeline import InMemoryPipeline

MISSING = "00000000-0000-5000-8000-000000000000"


@pytest.fixture
def wire(pipeline: InMemoryPipeline) -> InMemoryTransport:
    return InMemoryTransport(pipeline)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_added_is_found_shown_and_forgotten(wire: InMemoryTransport, revision: str) -> None:
    async with in_process(wire, revision=revision) as session:
        said = await answer(session, "add_memory", text="The spare key is under the third pot.", speaker="Ana")
        [hit] = (await answer(session, "search_memory", query="where is the spare key?"))["memories"]
        assert hit["memory_id"] == said["memory_id"]
        assert hit["text"] == "The spare key is under the third pot."
        assert set(hit) == {"memory_id", "text", "occurred_at", "speaker", "mode", "score"}
        record = await answer(session, "get_memory", memory_id=said["memory_id"])
        assert record["speaker"] == "Ana"
        assert record["conversation_id"] == "mcp"
        assert await answer(session, "delete_memory", memory_id=said["memory_id"]) == {"forgotten": 1}
        assert (await answer(session, "search_memory", query="where is the spare key?"))["memories"] == []
        assert await answer(session, "delete_memory", memory_id=said["memory_id"]) == {"forgotten": 0}


async def test_same_statement_is_one_memory(wire: InMemoryTransport) -> None:
    async with in_process(wire) as session:
        first = await answer(session, "add_memory", text="The lamp is green.")
        again = await answer(session, "add_memory", text="The lamp is green.")
        other = await answer(session, "add_memory", text="The lamp is green.", speaker="Ana")
    assert again == {**first, "duplicate": True}
    assert other["memory_id"] != first["memory_id"]


async def test_forgotten_statement_can_be_added_again(wire: InMemoryTransport) -> None:
    async with in_process(wire) as session:
        for _ in range(3):
            said = await answer(session, "add_memory", text="The lamp is green.")
            assert not said["duplicate"]
            listed = await answer(session, "list_memories")
            assert [memory["memory_id"] for memory in listed["memories"]] == [said["memory_id"]]
            await answer(session, "delete_memory", memory_id=said["memory_id"])


async def test_pages_end_without_next(wire: InMemoryTransport) -> None:
    async with in_process(wire) as session:
        for number in range(3):
            await answer(session, "add_memory", text=f"Note {number}.", occurred_at=f"2026-03-0{number + 1}T09:00:00Z")
        first = await answer(session, "list_memories", limit=2)
        last = await answer(session, "list_memories", limit=2, cursor=first["next"])
    assert [memory["text"] for memory in (*first["memories"], *last["memories"])] == ["Note 2.", "Note 1.", "Note 0."]
    assert first["total"] == 3
    assert "next" not in last


async def test_connection_has_a_project(wire: InMemoryTransport) -> None:
    async with in_process(wire, project="house") as session:
        await answer(session, "add_memory", text="The lamp is in the cellar.")
        await answer(session, "add_memory", text="The lamp is in the car.", project_id="car")
        here = await answer(session, "search_memory", query="lamp")
        everywhere = await answer(session, "search_memory", query="lamp", project_id="*")
    assert [memory["text"] for memory in here["memories"]] == ["The lamp is in the cellar."]
    assert len(everywhere["memories"]) == 2


async def test_filters(wire: InMemoryTransport) -> None:
    async with in_process(wire) as session:
        for speaker in ("Ana", "Ben"):
            await answer(session, "add_memory", text=f"The lamp of {speaker} is broken.", speaker=speaker)
        asked: dict[str, Any] = {"filters": {"speaker": "Ana", "role": ["user", "tool"]}}
        found = await answer(session, "search_memory", query="lamp", **asked)
        listed = await answer(session, "list_memories", **asked)
        context = await answer(session, "assemble_context", query="lamp", **asked)
        refused = await error(session, "search_memory", query="lamp", filters={"speaker": None})
    for memories in (found["memories"], listed["memories"]):
        assert [memory["text"] for memory in memories] == ["The lamp of Ana is broken."]
    assert "Ben" not in context["messages"][1]["content"]
    assert refused.endswith("(filters.speaker)")


async def test_context_and_modes(wire: InMemoryTransport) -> None:
    async with in_process(wire, tools=[*USUAL_TOOLS, *MORE_TOOLS]) as session:
        await answer(session, "declare_mode", name="journal")
        said = await answer(session, "add_memory", text="I was afraid of the move.", mode="journal")
        assert said["mode"] == "journal"
        moved = await answer(session, "set_memory_mode", memory_id=said["memory_id"], mode="general")
        assert moved["mode"] == "general"
        context = await answer(session, "assemble_context", query="what was I afraid of?", budget_tokens=1000)
        assert context["references"] == [said["memory_id"]]
        assert "afraid of the move" in context["messages"][1]["content"]
        names = [mode["name"] for mode in (await answer(session, "list_modes"))["modes"]]
        assert set(names) == {"general", "journal"}
        goals = await answer(session, "set_intention", goals=["ship the beta"])
        assert goals["goals"] == ["ship the beta"]
        assert await answer(session, "get_intention") == goals
        await answer(session, "set_intention", project_id="*", goals=["finish the thesis"])
        assert (await answer(session, "get_intention"))["whole_user"] == ["finish the thesis"]
        assert "general" in (await answer(session, "health"))["modes"]


async def test_a_context_names_the_turns_that_it_was_based_on(tmp_path: Path) -> None:
    async with (
        InMemoryPipeline(tmp_path, more_settings={"context_log": "ids"}).running() as pipeline,
        in_process(InMemoryTransport(pipeline), tools=[*USUAL_TOOLS, *MORE_TOOLS]) as session,
    ):
        said = await answer(session, "add_memory", text="I was afraid of the move.")
        context = await answer(session, "assemble_context", query="what was I afraid of?")
        basis = await answer(session, "get_context", context_id=context["context_id"])
    [reference] = basis["references"]
    assert reference["memory_id"] == said["memory_id"]
    assert [turn["conversation_id"] for turn in reference["turns"]] == ["mcp"]


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("add_memory", {"text": "x", "mode": "never"}, "unknown_mode: "),
        ("add_memory", {"text": "x" * 32_769}, "too_large: "),
        ("add_memory", {"text": "x", "occurred_at": "tomorrow"}, "(occurred_at)"),
        ("search_memory", {"query": "x", "top_k": 1000}, "(top_k)"),
        ("search_memory", {}, "(query)"),
        ("search_memory", {"query": "x", "user_id": "u2"}, "no such field; there are: query, mode, project_id"),
        ("list_memories", {"cursor": "nonsense"}, "invalid_value: "),
        ("get_memory", {"memory_id": MISSING}, "not_found: "),
    ],
)
async def test_errors_reach_the_model(wire: InMemoryTransport, tool: str, arguments: dict[str, Any], text: str) -> None:
    async with in_process(wire) as session:
        assert text in await error(session, tool, **arguments)


async def test_null_means_left_out(wire: InMemoryTransport) -> None:
    async with in_process(wire) as session:
        found = await answer(session, "search_memory", query="x", mode=None, top_k=None, since=None)
    assert found == {"memories": []}


async def test_foreign_and_missing_memories_are_alike(wire: InMemoryTransport) -> None:
    async with in_process(wire, "u1") as session:
        said = await answer(session, "add_memory", text="My diary is under the floor.")
    async with in_process(wire, "u2") as session:
        for memory_id in (said["memory_id"], MISSING):
            missing = "not_found: this user has no memory of that id (memory_id)"
            assert await error(session, "get_memory", memory_id=memory_id) == missing
            assert await error(session, "set_memory_mode", memory_id=memory_id, mode="general") == missing
            assert await answer(session, "delete_memory", memory_id=memory_id) == {"forgotten": 0}
    async with in_process(wire, "u1") as session:
        assert (await answer(session, "get_memory", memory_id=said["memory_id"]))["text"]


async def test_worker_that_hangs_is_a_timeout(pipeline: InMemoryPipeline) -> None:
    class HangingWire(InMemoryTransport):
        async def request(self, *_: Any, timeout: float | None = None, **__: Any) -> Any:
            await asyncio.sleep(timeout or 0)
            raise MemoryTimeout("Kafka at broker:9092 gave no reply on memory.retrieve")

    async with in_process(HangingWire(pipeline), wait_s=0.05) as session:
        told = await error(session, "search_memory", query="x")
    assert told == "timeout: no answer in time; call it again with the same arguments"


async def test_resources_and_prompt(wire: InMemoryTransport) -> None:
    async with in_process(wire) as session:
        said = await answer(session, "add_memory", text="The lamp is green.")
        [modes] = (await session.read_resource("memory://modes")).contents
        assert '"name":"general"' in modes.text  # type: ignore[union-attr]
        [memory] = (await session.read_resource(f"memory://memories/{said['memory_id']}")).contents
        assert "The lamp is green." in memory.text  # type: ignore[union-attr]
        prompt = await session.get_prompt("recall", {"topic": "lamp"})
        assert "quoted data" in prompt.messages[0].content.text  # type: ignore[union-attr]
        assert "The lamp is green." in prompt.messages[0].content.text  # type: ignore[union-attr]
        for uri in ("memory://nothing", f"memory://memories/{MISSING}"):
            with pytest.raises(MCPError, match="not_found"):
                await session.read_resource(uri)
        with pytest.raises(MCPError, match="topic"):
            await session.get_prompt("recall", {})
