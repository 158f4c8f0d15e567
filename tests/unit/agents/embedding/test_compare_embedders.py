"""The vectors by which the embedder of a mode is compared with `general`."""

from typing import cast

from agents.embedding.maintain import CompareEmbedders
from agents.ports.indexes import LexicalIndex
from agents.rules.modes.embedder_comparison import SampledTurn
from agents.rules.text.passages import MAX_UNCUT_CHARS
from streams.flow.stores import at_partition
from tests.fakes.tables.memories import FakeMemories
from tests.harnesses.embed import PARTITION, EmbedHarness, remembered


async def test_long_turns_are_compared_by_their_passages(harness: EmbedHarness) -> None:
    memories, memory = FakeMemories(), remembered(f"{'some words ' * 40}\n\n{'other words ' * 40}", mode="code")
    memories.put(PARTITION, memory)
    compare = CompareEmbedders(at_partition(memories, PARTITION), cast(LexicalIndex, None), harness.spaces)
    mode = harness.spaces.mode(memory.boundary, "code", memory.scope)
    await compare.encode(SampledTurn(memory.memory_id, 0), mode)
    assert max(map(len, harness.embedders.model("general").passages)) <= MAX_UNCUT_CHARS
