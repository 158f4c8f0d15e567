"""The embedded index and other processes: a second owner, kills at any moment."""

import signal
from pathlib import Path

import pytest

from streams.adapters.vectors.embedded.edge_collections import PACKED_DIR
from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from tests.harnesses.edge_index import SPACE, kept_in, killed_at, points, run_child


async def test_second_owner_is_refused_and_does_no_harm(tmp_path: Path) -> None:
    owner = EdgeIndex(tmp_path)
    await owner.upsert(SPACE, points(range(2)))
    with pytest.raises(RuntimeError, match=f"another process owns .*{tmp_path}"):
        EdgeIndex(tmp_path)
    elsewhere = run_child(tmp_path, "try:\n EdgeIndex(root)\nexcept RuntimeError as error:\n print(error)")
    assert str(tmp_path) in elsewhere.communicate()[0]
    await owner.upsert(SPACE, points(range(2, 4)))
    await owner.close()
    assert len(await kept_in(tmp_path, range(4))) == 4


@pytest.mark.parametrize("acknowledged", [1, 40, 200])
async def test_kill_loses_no_acknowledged_write(tmp_path: Path, acknowledged: int) -> None:
    with run_child(tmp_path, "asyncio.run(write_forever())") as child:
        assert child.stdout
        promised = [int(child.stdout.readline()) for _ in range(acknowledged)][-1]
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    assert len(await kept_in(tmp_path, range(promised))) == promised


MOMENTS = (
    "edge_shard.make_shard = die",
    "edge_shard.create_index_operation = die",
    "edge_shard.write_durably = die",
    "edge_shard.CollectionShard.create = die",
    "edge_shard.make_shard = lambda *_: setattr(edge_shard, 'write_durably', die)",
    "durable_files.os.fsync = die",
    "Path.rename = die",
    "edge_shard.CollectionShard.__init__ = die",
    "edge_shard.CollectionShard.index = die",
    "packed_vectors.PackedVectors.begin = die",
    "packed_vectors.PackedVectors.put = die",
)
"""Ends of the process while it creates a collection."""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, int]]:
    """The folders of the moments, and how their processes ended."""
    folders = {moment: tmp_path_factory.mktemp("killed") for moment in MOMENTS}
    codes = killed_at(folders)
    return {moment: (folders[moment], code) for moment, code in zip(MOMENTS, codes, strict=True)}


@pytest.mark.parametrize("moment", MOMENTS)
async def test_kill_during_creation_of_a_collection_is_repaired(
    ended: dict[str, tuple[Path, int]], moment: str
) -> None:
    folder, code = ended[moment]
    assert code == -signal.SIGKILL
    index = EdgeIndex(folder)
    assert await index.count(SPACE, 0) == 0
    assert set(await index.spaces()) <= {SPACE.collection}
    await index.upsert(SPACE, points(range(4)))
    assert await index.count(SPACE, 0) == 4
    assert {path.name for path in folder.iterdir() if not path.name.startswith((".owner", PACKED_DIR))} == {
        SPACE.collection,
        "general.alias",
    }
    await index.close()
