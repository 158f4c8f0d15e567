from agents.categories.matching import MAX_BACKGROUNDS, CategoryVectors
from tests.fakes.embedder import FakeEmbedder


async def test_backgrounds_of_few_vector_spaces_are_kept() -> None:
    vectors = CategoryVectors()
    spaces = [FakeEmbedder(passage_prefix=f"prefix {number} ", tokens=False) for number in range(MAX_BACKGROUNDS + 5)]
    for space in spaces:
        await vectors.background(space)
    assert len(vectors._backgrounds) == MAX_BACKGROUNDS
    asked = len(spaces[-1].passages), len(spaces[0].passages)
    await vectors.background(spaces[-1])
    await vectors.background(spaces[0])
    assert len(spaces[-1].passages) == asked[0]
    assert len(spaces[0].passages) == 2 * asked[1]
