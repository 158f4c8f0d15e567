import asyncio

import pytest

from bench import floods


def test_a_row_shows_the_beginning_of_the_flood_apart() -> None:
    during = [*([100.0] * 7), 900.0, *([50.0] * 32)]

    [row] = floods.rows("turns", {"turn, same partition": [10.0] * 40}, {"turn, same partition": during})

    assert row == "| turns | turn, same partition | 10 | 50 | 5.0 | 10 | 100 | 10.0 | 900 |"


async def test_latencies_are_in_the_order_in_which_probes_were_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = iter([0.05, 0.0])

    async def slow_first() -> None:
        await asyncio.sleep(next(waits))

    monkeypatch.setattr(floods, "_requests", lambda _client, _user: {"question": slow_first})
    monkeypatch.setattr(floods, "INTERVAL_S", 0.001)

    latencies = await floods.probe(None, {"here": "bob"}, 0.002)  # type: ignore[arg-type]

    first, second = latencies["question, here"]
    assert first > second
