"""The embedded vector index with points, in this process and in one that a test kills."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from schemas.models.vectors import Point
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from tests.builders.spaces import space_of

SPACE = space_of(dim=8)
TOKEN_SPACE = space_of(dim=8, token_dim=4)
ONES = np.ones(8, dtype=np.float32)


def memory(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def points(numbers: range) -> list[Point]:
    """Return points of these memories, all with the vector `ONES`."""
    return [
        Point(memory(number), ONES, "u1", 0, {"user_id": "u1"}, "general", "episodic", number, f"hash-{number}")
        for number in numbers
    ]


def long_points(numbers: range) -> list[Point]:
    """Return points whose token vectors are as many as a text can have."""
    return [replace(point, tokens=np.ones((256, 4), np.float32)) for point in points(numbers)]


async def kept_in(root: Path, numbers: range, space: VectorSpace = SPACE) -> set[str]:
    """Return which of these memories an index of this directory has."""
    index = EdgeIndex(root)
    try:
        return set(await index.hashes(space, [memory(number) for number in numbers]))
    finally:
        await index.close()


CHILD = """
import asyncio, json, os, signal, sys
from pathlib import Path
from streams.adapters import durable_files
from streams.adapters.vectors.embedded import edge_shard, packed_vectors
from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from streams.adapters.vectors.embedded.edge_index import EdgeResources
from streams.adapters.vectors.embedded.edge_collections import OpenShards
from tests.harnesses.edge_index import SPACE, points

root = Path(sys.argv[1])

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

async def write_forever():
    index, start = EdgeIndex(root), 0
    while True:
        await index.upsert(SPACE, points(range(start, start + 32)))
        start += 32
        print(start, flush=True)

async def write_once():
    await EdgeIndex(root).upsert(SPACE, points(range(4)))

"""


def run_child(root: Path, code: str, *more: str) -> subprocess.Popen[str]:
    """Run code in another process after that of `CHILD`."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(
        [sys.executable, "-c", CHILD + code, str(root), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )


KILLED = """
for folder, moment in json.loads(sys.argv[2]):
    if pid := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    else:
        root = Path(folder)
        exec(moment)
        asyncio.run(write_once())
        os._exit(0)
"""


def killed_at(folders: Mapping[str, Path]) -> list[int]:
    """Write once for each moment, in its folder, by a process that is to die then; return how each ended.

    They are copies of one process: its start takes a second.
    """
    moments = json.dumps([(str(folder), moment) for moment, folder in folders.items()])
    with run_child(Path(), KILLED, moments) as child:
        assert child.stdout
        return [int(line) for line in child.stdout]
