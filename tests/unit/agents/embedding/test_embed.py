"""`Embed`: events in, points and reports out."""

import pytest

from agents.embedding.embed import MAX_ERROR_CHARS
from schemas.failures import Unavailable
from tests.harnesses.embed import PARTITION, EmbedHarness, remembered


async def test_memory_is_indexed_and_reported_as_ready(harness: EmbedHarness) -> None:
    memory = remembered("violin")
    [report] = await harness.embed.write(await harness.encode(memory))
    assert report.memory_id == memory.memory_id
    assert report.content_hash == memory.content_hash
    assert report.status == "ready"
    assert report.mode == "general"
    assert report.space == harness.location("general").space
    assert report.at == harness.clock.now()
    assert await harness.stored_hash(memory) == memory.content_hash
    assert await harness.index.count(harness.space("general"), PARTITION) == 1


async def test_unembeddable_text_fails_alone_with_a_short_reason(harness: EmbedHarness) -> None:
    good, bad = remembered("violin", "a"), remembered("unspeakable", "b")
    reports = await harness.embed.write(await harness.encode(good, bad))
    assert [report.status for report in reports] == ["ready", "failed"]
    assert (reports[1].error or "").startswith("ValueError: x")
    assert len(reports[1].error or "") == MAX_ERROR_CHARS
    assert await harness.stored_hash(bad) is None


async def test_rejected_vector_fails_alone(harness: EmbedHarness) -> None:
    memories = [remembered(text, text) for text in ("violin", "infinite", "cello")]
    reports = await harness.embed.write(await harness.encode(*memories))
    assert [(report.memory_id, report.status) for report in reports] == [
        (memory.memory_id, status) for memory, status in zip(memories, ("ready", "failed", "ready"), strict=True)
    ]
    assert [await harness.stored_hash(memory) is not None for memory in memories] == [True, False, True]


async def test_batch_is_one_write(harness: EmbedHarness) -> None:
    memories = [remembered(text, text) for text in ("violin", "cello", "drum")]
    await harness.embed.write(await harness.encode(*memories))
    assert harness.index.upserts == [[memory.memory_id for memory in memories]]


async def test_modes_are_written_separately_and_reported_in_order(harness: EmbedHarness) -> None:
    memories = [remembered(str(n), str(n), mode) for n, mode in enumerate(["general", "code", "general", "code"])]
    reports = await harness.embed.write(await harness.encode(*memories))
    assert [report.memory_id for report in reports] == [memory.memory_id for memory in memories]
    assert [report.space for report in reports] == [harness.location(memory.mode).space for memory in memories]


async def test_latest_of_two_versions_in_a_batch_is_the_one_written(harness: EmbedHarness) -> None:
    old, new = remembered("violin"), remembered("cello")
    reports = await harness.embed.write(await harness.encode(old, new))
    assert [report.content_hash for report in reports] == [new.content_hash]
    assert harness.index.upserts == [[new.memory_id]]
    assert await harness.stored_hash(new) == new.content_hash


async def test_later_of_two_versions_survives_a_refused_vector(harness: EmbedHarness) -> None:
    old, bad, new = remembered("violin"), remembered("infinite", "b"), remembered("cello")
    reports = await harness.embed.write(await harness.encode(old, bad, new))
    assert {report.memory_id: report.status for report in reports} == {new.memory_id: "ready", bad.memory_id: "failed"}
    assert await harness.stored_hash(new) == new.content_hash


async def test_model_outage_does_not_fail_the_text(harness: EmbedHarness) -> None:
    harness.embedders.model("general").outage = True
    with pytest.raises(Unavailable):
        await harness.encode(remembered("violin"))


async def test_index_outage_does_not_fail_the_text(harness: EmbedHarness) -> None:
    vectored = await harness.encode(remembered("violin"), remembered("unspeakable", "b"))
    harness.index.down()
    with pytest.raises(Unavailable):
        await harness.embed.write(vectored)
    harness.index.up()
    assert [report.status for report in await harness.embed.write(vectored)] == ["ready", "failed"]


async def test_nothing_is_written_for_an_empty_batch(harness: EmbedHarness) -> None:
    assert await harness.embed.write([]) == []
    assert harness.index.upserts == []


async def test_memory_without_loaded_model_waits_and_delays_no_other(harness: EmbedHarness) -> None:
    harness.embedders.missing("tiny32")
    waits, goes = remembered("violin", "a", "code"), remembered("cello", "b")
    reports = {memory.memory_id: memory for memory in await harness.write(waits, goes)}
    assert reports[waits.memory_id].status == "waiting"
    assert reports[waits.memory_id].space is None
    assert "missing" in (reports[waits.memory_id].error or "")
    assert reports[goes.memory_id].status == "ready"


async def test_memory_waits_for_its_language_model_and_delays_no_other(harness: EmbedHarness) -> None:
    harness.embedders.missing("multilingual-small")
    waits, goes = remembered("Der Hund schläft im Garten.", "a"), remembered("The dog sleeps.", "b")
    reports = {memory.memory_id: memory for memory in await harness.write(waits, goes)}
    assert reports[waits.memory_id].status == "waiting"
    assert reports[waits.memory_id].space is None
    assert reports[goes.memory_id].status == "ready"


async def test_memory_of_a_deleted_mode_waits_for_its_change(harness: EmbedHarness) -> None:
    [report] = await harness.write(remembered("violin", mode="gone"))
    assert report.status == "waiting"
    assert report.mode == "gone"
    assert report.space is None


async def test_vector_is_written_in_the_location_of_its_event_only(harness: EmbedHarness) -> None:
    memory = remembered("violin")
    [report] = await harness.write(memory)
    assert await harness.embed.has_written(report, 0)
    for elsewhere in ({"content_hash": "of another text"}, {"mode": "notes"}, {"space": "s"}, {"space": None}):
        assert not await harness.embed.has_written(report.model_copy(update=elsewhere), 0)
    await harness.index.delete(harness.space("general"), [memory.memory_id])
    assert not await harness.embed.has_written(report, 0)
