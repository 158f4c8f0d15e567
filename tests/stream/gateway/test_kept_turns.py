"""A person keeps what a consolidation replaced, on its page, over the whole pipeline."""

from gateway.service.events import already_begun
from gateway.service.runs import Runs
from gateway.service.service import MemoryService
from tests.worlds.consolidation import consolidate, of_origin, remember_many
from tests.worlds.in_memory_client import InMemoryTransport
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.pages import pages_over


async def test_kept_turns_are_found_again_and_stay(pipeline: InMemoryPipeline) -> None:
    await remember_many(pipeline, 4)
    [created] = (await consolidate(pipeline))["created"]
    runs = Runs(already_begun)
    for record in pipeline.topics.records(pipeline.names.consolidated):
        runs.apply(record.value)
    async with pages_over(MemoryService(InMemoryTransport(pipeline), runs=runs)) as http:
        page = (await http.get("/admin/consolidations?user=u1")).text
        address = page.partition('href="/admin/consolidations/one/')[2].partition('"')[0]
        kept = await http.post(f"/admin/consolidations/one/{address}", data={"memory_id": created})
    assert kept.status_code == 303
    assert len(await pipeline.texts("watered the tomatoes")) == 4
    assert (await consolidate(pipeline))["created"] == []
    assert of_origin(pipeline, "distilled") == []
