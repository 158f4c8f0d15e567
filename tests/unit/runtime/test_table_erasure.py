"""Each changelog gets a record more, so that Kafka compacts what was replaced."""

import asyncio
from pathlib import Path
from typing import Any

import faust
import pytest

from streams.runtime.awaited_table import create_table
from streams.runtime.partition_store import PARTITION_STORE
from streams.runtime.table_erasure import TableErasure
from streams.wire.fillers import FILLER_KEY


async def test_changelogs_of_all_tables_are_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, int | None, bytes, bytes | None]] = []

    def send(
        table: faust.Table[bytes, bytes], partition: int | None, key: bytes, value: bytes | None, *_: Any, **__: Any
    ) -> asyncio.Future[None]:
        written.append((table.name, partition, key, value))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    monkeypatch.setattr(faust.Table, "send_changelog", send)
    app = faust.App("t", broker="kafka://nowhere:1", store=f"{PARTITION_STORE}://", datadir=str(tmp_path))
    names = [create_table(app, name).name for name in ("memories", "modes")]
    await TableErasure(app).erase(0)
    assert written == [(name, 0, FILLER_KEY.encode(), None) for name in names]
