"""Ask with a language model: its answer above the hits, piece by piece, with references that lead to memories."""

from typing import Any

import pytest

from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over

MODEL = {"language_model": {"main": {"model": "m", "state": "closed", "calls": 0, "failures": 0, "last_error": None}}}

ANSWER: dict[str, Any] = {"text": "On <b>Friday</b> [1].", "references": ["m1"], "context_id": "c", "profile": "main"}


@pytest.fixture
def wire() -> FakeWire:
    made = FakeWire()
    made.results["list.v1"] = {"items": [], "next": None, "total": 0}
    made.results["retrieve.v1"] = {"hits": [], "modes": ["general"], "strategy": "hybrid", "diagnostics": {}}
    made.results["answer.v1"] = ANSWER
    made.results["health"] = {"modes": {}, "lag": {}, "vector_index": "ready", **MODEL}
    return made


async def test_an_answer_is_streamed_and_stored_nowhere(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        stream = (await http.get("/admin/ask/answer?user=u1&q=when")).text
    [asked] = [record for record in wire.records if record["schema"] == "answer.v1"]
    assert asked["store"] is False
    assert "On &lt;b&gt;Friday&lt;/b&gt; " in stream
    assert '<a href="/admin/memories/m1?user=u1">[1]</a>' in stream
    assert stream.endswith("event: done\ndata:\n\n")


async def test_without_a_script_the_answer_is_on_the_page(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/ask?user=u1&q=when&answer=1")).text
    assert '<a href="/admin/memories/m1?user=u1">[1]</a>' in page


async def test_without_a_model_no_answer_is_asked_for(wire: FakeWire) -> None:
    wire.results["health"] = {"modes": {}, "lag": {}, "vector_index": "ready", "language_model": None}
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/ask?user=u1&q=when")).text
    assert "ask/answer" not in page


async def test_what_needs_attention_has_its_job(wire: FakeWire) -> None:
    vectors = {"ready": 1, "pending": 0, "stale": 0, "failed": 3, "error": None}
    paused = {"main": {**MODEL["language_model"]["main"], "state": "open"}}
    wire.results["health"] = {"modes": {"general": vectors}, "lag": {}, "language_model": paused}
    async with pages_over(MemoryService(wire)) as http:
        part = (await http.get("/admin/attention?user=u1")).text
    assert "3 memories could not be embedded" in part
    assert 'name="job" value="retry_failed"' in part
    assert "The language model main is paused after failures" in part


async def test_nothing_is_said_when_all_is_well(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        assert (await http.get("/admin/attention?user=u1")).text.strip() == ""
