"""Suggestions of undeclared modes through the whole pipeline."""

from pathlib import Path

from tests.worlds.in_memory_pipeline import InMemoryPipeline

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
        assert (kitchen["size"], kitchen["in_mode"]) == (16, "general")
        assert all("soup" in example["text"] for example in kitchen["examples"])
        assert await pipeline.command("list_modes") == before


async def test_user_without_memories_gets_no_suggestion(tmp_path: Path) -> None:
    async with InMemoryPipeline(tmp_path / "data").running() as pipeline:
        assert (await pipeline.command("suggest_modes"))["result"] == {"suggestions": [], "looked_at": 0}
