"""Custom steps behind, and in the place of, the step that reads files."""

import pytest

from schemas.state.memories import Resource
from tests.builders.custom_steps import HERE
from tests.stream.layers.test_files import is_read, parts, resource, upload
from tests.stream.pipelines.test_editing import edit, insert
from tests.worlds.in_memory_pipeline import InMemoryPipeline

READ = "memorize.read_files"
BILL = "Pay the boat house with 4111 1111 1111 1111.\n\nThe key is under the pot."


async def read_with(pipeline: InMemoryPipeline, step: str, text: str = BILL) -> Resource:
    """Upload a file once this step is behind the reading; return what became of it."""
    await edit(pipeline, insert("memorize.own", READ, step))
    await upload(pipeline, text)
    return await is_read(pipeline)


async def test_a_step_changes_the_text_of_a_file_before_it_is_stored(pipeline: InMemoryPipeline) -> None:
    assert (await read_with(pipeline, "RedactFile")).status == "ready"
    assert [part.text for part in parts(pipeline)] == [BILL.replace("4111 1111 1111 1111", "[card]")]


async def test_a_class_reads_files_in_place_of_the_step(pipeline: InMemoryPipeline) -> None:
    await edit(pipeline, {"op": "replace", "step_id": READ, "implementation": f"{HERE}.ReadBackwards"})
    await upload(pipeline, BILL[::-1])
    assert (await is_read(pipeline)).reader == "backwards house.txt"
    assert [part.text for part in parts(pipeline)] == [BILL]


@pytest.mark.parametrize(
    ("step", "text", "error"),
    [
        ("RedactFile", "card 0", "step memorize.own failed: RuntimeError"),
        ("SegmentBeyondTheEnd", BILL, "step memorize.own failed: the segments of `file_text` are within its text"),
    ],
)
async def test_a_step_that_fails_costs_its_file_alone(
    pipeline: InMemoryPipeline, step: str, text: str, error: str
) -> None:
    read = await read_with(pipeline, step, text)
    assert read.code == "unreadable"
    assert (read.error or "").startswith(error)
    await pipeline.remember("The boat is blue.", "t-1")
    await pipeline.topics.settled()
    assert pipeline.memory("The boat is blue.").version == 1


async def test_a_file_that_was_not_read_is_read_once_reading_is_on_again(pipeline: InMemoryPipeline) -> None:
    await edit(pipeline, {"op": "remove", "step_id": READ})
    await upload(pipeline, BILL)
    assert (await is_read(pipeline)).error == "memorize.read_files is switched off."
    await edit(pipeline, {"op": "config", "step_id": READ, "enabled": True})
    await pipeline.command("retry_failed")
    await pipeline.until(lambda: resource(pipeline).status == "ready")
