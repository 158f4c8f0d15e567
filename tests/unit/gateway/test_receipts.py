"""The latest of each receipt is shown, also one that is only on its way; of many the oldest are dropped."""

import asyncio
import json

import pytest

from gateway.service import events as module
from gateway.service.calls import Refused
from gateway.service.events import Receipts
from schemas.messages.records import Record


def told(receipt_id: str, state: str) -> Record:
    value = json.dumps({"receipt_id": receipt_id, "state": state}).encode()
    return Record("receipts", 0, 0, 0, receipt_id.encode(), value)


async def test_the_latest_is_shown() -> None:
    receipts = Receipts()
    receipts.take([told("r1", "hidden"), told("r2", "hidden"), told("r1", "erased")])
    assert (await receipts.get("r1"))["state"] == "erased"
    assert (await receipts.get("r2"))["state"] == "hidden"


async def test_one_that_is_on_its_way_is_awaited() -> None:
    receipts = Receipts()
    asked = asyncio.create_task(receipts.get("r1"))
    await asyncio.sleep(0)
    receipts.take([told("r2", "hidden")])
    await asyncio.sleep(0)
    receipts.take([told("r1", "hidden")])
    assert (await asked)["receipt_id"] == "r1"


async def test_the_oldest_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RECEIPTS", 2)
    monkeypatch.setattr(module, "ARRIVAL_S", 0)
    receipts = Receipts()
    receipts.take([told(f"r{number}", "hidden") for number in range(3)])
    assert (await receipts.get("r2"))["receipt_id"] == "r2"
    with pytest.raises(Refused) as error:
        await receipts.get("r0")
    assert error.value.code == "not_found"
