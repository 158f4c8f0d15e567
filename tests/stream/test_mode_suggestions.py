"""The report of modes that nobody declared, over the whole map: turns in, a suggestion out, nothing changed."""

from pathlib import Path

from tests.worlds.in_memory_pipeline import InMemoryMap

SOUP = "Simmer soup with onion, carrot, leek; season broth with salt, thyme, batch {}."
ODD = "alpha{0} beta{0} gamma{0} delta{0} epsilon{0}"


async def test_a_register_that_is_talked_in_without_a_mode_is_suggested_and_not_applied(tmp_path: Path) -> None:
    async with InMemoryMap(tmp_path / "data").running() as the_map:
        for number in range(16):
            talk = f"kitchen-{number // 8}"
            await the_map.remember(SOUP.format(number), conversation_id=talk)
        for number in range(20):
            await the_map.remember(ODD.format(number), conversation_id=f"odd-{number}")
        await the_map.topics.settled()
        before = await the_map.command("list_modes")
        result = (await the_map.command("suggest_modes"))["result"]
        assert result["looked_at"] == 36
        [kitchen] = result["suggestions"]
        assert (kitchen["size"], kitchen["in_mode"]) == (16, "general")
        assert all("soup" in example["text"] for example in kitchen["examples"])
        assert await the_map.command("list_modes") == before


async def test_a_user_without_memories_gets_no_suggestion(tmp_path: Path) -> None:
    async with InMemoryMap(tmp_path / "data").running() as the_map:
        assert (await the_map.command("suggest_modes"))["result"] == {"suggestions": [], "looked_at": 0}
