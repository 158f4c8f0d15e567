"""The job `verify`: what it finds, and that it changes nothing."""

from typing import Any

from tests.worlds.in_memory_pipeline import InMemoryPipeline

COUNTS = ("words_orphaned", "vectors_missing", "vectors_orphaned", "pending", "stale", "failed")


async def remember(pipeline: InMemoryPipeline, *texts: str) -> dict[str, str]:
    """Remember turns, wait for their vectors, and return their memory ids by text."""
    for text in texts:
        await pipeline.remember(text, text)
    await pipeline.topics.settled()
    return {text: pipeline.memory(text).memory_id for text in texts}


async def verified(pipeline: InMemoryPipeline) -> tuple[dict[str, int], dict[str, Any]]:
    """Run the job; return what it has counted, and its examples."""
    result = (await pipeline.command("verify", all_projects=True))["result"]
    return {name: result[name] for name in COUNTS if result[name]}, result["examples"]


async def test_whole_stores_have_nothing_amiss(pipeline: InMemoryPipeline) -> None:
    await remember(pipeline, "violin", "cello")
    assert await verified(pipeline) == ({}, {})


async def test_missing_and_orphaned_vectors_and_words_are_named_and_stay(pipeline: InMemoryPipeline) -> None:
    ids = await remember(pipeline, "violin", "cello", "drum")
    space = pipeline.space("general", "general")
    await pipeline.index.delete(space, [ids["violin"]])
    pipeline.memories.forget(pipeline.topics.records(pipeline.names.turns)[0].partition, ids["cello"])
    gone = [ids["cello"]]
    expected = {"vectors_missing": [ids["violin"]], "words_orphaned": gone, "vectors_orphaned": gone}
    for _ in range(2):
        counts, examples = await verified(pipeline)
        assert counts == dict.fromkeys(expected, 1)
        assert examples == expected
    assert pipeline.memory("violin").embedding.status == "ready"
    assert set(await pipeline.index.hashes(space, list(ids.values()))) == {ids["cello"], ids["drum"]}


async def test_failed_and_pending_vectors_are_counted(pipeline: InMemoryPipeline) -> None:
    await pipeline.command("declare_mode", name="code", embedder="tiny32")
    pipeline.embedders.missing("tiny32")
    await pipeline.remember("violin", "violin", mode="code")
    await pipeline.topics.settled()
    assert (await verified(pipeline))[0] == {"pending": 1}
