"""Places in the turns topic as text."""

import pytest
from modestream_client import MemoryServiceError, Written


def test_place_survives_the_way_through_text() -> None:
    assert Written.parse(Written(3, 17).read_after) == (3, 17)


@pytest.mark.parametrize(
    "text", ["", "soon", "3", "3:", ":3", "-1:3", "3:-1", "3:1.5", " 3:1", "3:1\n", "\u0663:\u0661", "9" * 5000 + ":1"]
)
def test_other_text_is_an_invalid_value(text: str) -> None:
    with pytest.raises(MemoryServiceError) as refused:
        Written.parse(text)
    assert refused.value.code == "invalid_value"
    assert refused.value.field == "read_after"
    assert len(str(refused.value)) < 200
