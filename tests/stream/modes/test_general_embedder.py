"""The deployment gives `general` another embedder: to later users, and to those that have declared none."""

from pathlib import Path

from schemas.state.modes import GENERAL, EmbedderDescription, FormerEmbedder, ModeDeclarations, general_by
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.mode_commands import count_vectors, remember_turn

BUILT_IN = "general/all-MiniLM-L6-v2"


def complete(declared: ModeDeclarations) -> ModeDeclarations:
    general = general_by(EmbedderDescription(name="tiny48", dim=48))
    return declared.model_copy(update={"general": general})


async def by_builtin(directory: Path, *texts: str) -> InMemoryPipeline:
    """Return a stopped worker with turns of a user by the built-in embedder; the next start has the other one."""
    pipeline = InMemoryPipeline(directory)
    async with pipeline.running():
        for text in texts:
            await remember_turn(pipeline, text)
    pipeline.complete_modes = complete
    return pipeline


async def general_of(pipeline: InMemoryPipeline, user: str) -> tuple[str, str | None]:
    """Return the embedder of a user's `general`, and its former one."""
    modes = (await pipeline.command("list_modes", user))["result"]["modes"]
    [general] = [mode for mode in modes if mode["name"] == GENERAL]
    return general["embedder"], general["former_embedder"]


async def test_later_users_have_the_embedder_of_the_deployment(tmp_path: Path) -> None:
    pipeline = await by_builtin(tmp_path)
    async with pipeline.running():
        await remember_turn(pipeline, "Crate 1 is in the hall.")
        assert await count_vectors(pipeline) == {"general/tiny48": 1}
        assert await general_of(pipeline, "u1") == ("tiny48", "general")


async def test_user_with_a_general_of_its_own_keeps_it(tmp_path: Path) -> None:
    pipeline = await by_builtin(tmp_path)
    async with pipeline.running():
        await pipeline.command("declare_mode", name=GENERAL, embedder="tiny32")
        await remember_turn(pipeline, "Crate 1 is in the hall.")
        assert await count_vectors(pipeline) == {"general/tiny32": 1}


async def test_users_with_vectors_are_served_by_the_built_in_one_until_all_others_are_made(tmp_path: Path) -> None:
    pipeline = await by_builtin(tmp_path, "Crate 1 is in the hall.", "Crate 2 is in the hall.")
    pipeline.embedders.model("tiny48").rejected_word = "Crate 2"
    pipeline.embedders.missing("tiny48")
    async with pipeline.running():
        builtin = pipeline.embedders.model(GENERAL)
        asked = len(builtin.queries)
        reply = await pipeline.retrieve("which crate is in the hall?")
        assert reply["result"]["strategy"] == "hybrid"
        assert reply["warnings"] == []
        assert len(builtin.queries) == asked + 1
        pipeline.embedders.load("tiny48")
        await pipeline.until(lambda: pipeline.memory("Crate 1 is in the hall.").embedding.space == digest(pipeline))
        await pipeline.until(lambda: pipeline.memory("Crate 2 is in the hall.").embedding.status == "failed")
        await pipeline.topics.settled()
        assert await count_vectors(pipeline) == {BUILT_IN: 2, "general/tiny48": 1}, "the way back is open"


async def test_way_back_makes_no_vector_that_is_there_and_those_of_turns_since(tmp_path: Path) -> None:
    pipeline = await by_builtin(tmp_path, "Crate 1 is in the hall.")
    async with pipeline.running():
        await pipeline.until(lambda: pipeline.memory("Crate 1 is in the hall.").embedding.space == digest(pipeline))
        await remember_turn(pipeline, "Crate 2 is in the hall.")
        assert await count_vectors(pipeline) == {BUILT_IN: 1, "general/tiny48": 2}
    pipeline.complete_modes = back
    requested = len(pipeline.topics.records(pipeline.names.remembered))
    async with pipeline.running():
        await pipeline.until(
            lambda: digest(pipeline) not in {memory.embedding.space for memory in pipeline.memories.all()}
        )
        await pipeline.until(lambda: all(memory.embedding.status == "ready" for memory in pipeline.memories.all()))
        assert await count_vectors(pipeline) == {BUILT_IN: 2, "general/tiny48": 2}
        assert len(pipeline.topics.records(pipeline.names.remembered)) == requested + 1


def back(declared: ModeDeclarations) -> ModeDeclarations:
    builtin = EmbedderDescription(name=GENERAL, dim=384)
    general = general_by(builtin, FormerEmbedder(embedder="tiny48", embedding_dim=48))
    return declared.model_copy(update={"general": general})


def digest(pipeline: InMemoryPipeline) -> str:
    return pipeline.space(GENERAL, "tiny48").fingerprint.digest


async def test_own_declaration_of_the_embedder_keeps_the_former_vectors(tmp_path: Path) -> None:
    pipeline = await by_builtin(tmp_path, "Crate 1 is in the hall.")
    pipeline.embedders.missing("tiny48")
    async with pipeline.running():
        await pipeline.command("declare_mode", name=GENERAL, embedder="tiny48")
        assert await general_of(pipeline, "u1") == ("tiny48", "general")
        await pipeline.command("declare_mode", name=GENERAL, embedder="general")
        assert await general_of(pipeline, "u1") == ("general", "tiny48")
