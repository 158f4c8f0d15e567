"""Suggestions of undeclared modes through the whole pipeline."""

from pathlib import Path

from agents.commands.admit import Admit
from schemas.state.policies import Policy
from streams.adapters.policy_file import PolicyFile
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import command_message, turn_message

SOUP = "Simmer soup with onion, carrot, leek; season broth with salt, thyme, batch {}."
ODD = "alpha{0} beta{0} gamma{0} delta{0} epsilon{0}"


async def test_register_without_a_mode_is_suggested_and_not_applied(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path / "data").running() as pipeline:
        for number in range(16):
            talk = f"kitchen-{number // 8}"
            await pipeline.remember(SOUP.format(number), conversation_id=talk)
        for number in range(20):
            await pipeline.remember(ODD.format(number), conversation_id=f"odd-{number}")
        await pipeline.topics.settled()
        before = await pipeline.command("list_modes")
        result = (await pipeline.command("suggest_modes"))["result"]
        assert result["looked_at"] == 36
        [kitchen] = result["suggestions"]
        assert kitchen["size"] == 16
        assert kitchen["in_mode"] == "general"
        assert all("soup" in example["text"] for example in kitchen["examples"])
        assert await pipeline.command("list_modes") == before


async def test_user_without_memories_gets_no_suggestion(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path / "data").running() as pipeline:
        assert (await pipeline.command("suggest_modes"))["result"] == {"suggestions": [], "looked_at": 0}


async def test_suggestions_show_only_projects_that_the_sender_may_read(tmp_path: Path) -> None:
    grants = {"reader": [{"user_id": "u1", "project_id": "p1", "may": ["read"]}], "all": [{"user_id": "*"}]}
    admit = Admit(PolicyFile(Policy.model_validate({"principals": grants})))
    async with InMemoryPipeline(tmp_path / "data", admit=admit).running() as pipeline:
        gateway = (("principal", b"all"),)
        for number in range(16):
            scope = {"user_id": "u1", "project_id": "p2"}
            turn = turn_message(SOUP.format(number), f"t{number}", conversation_id=f"k{number // 8}", scope=scope)
            await pipeline.ask(pipeline.names.turns, turn, gateway)
        await pipeline.topics.settled()
        asked = command_message("suggest_modes", project="p1")
        for headers, looked_at in ((gateway, 16), ((("principal", b"reader"),), 0)):
            seen = (await pipeline.ask(pipeline.names.commands, asked, headers))["result"]
            assert seen["looked_at"] == looked_at
