"""Workers that come and go, brokers that are away or lost for good."""

import asyncio
import shutil
import signal
import sys
from contextlib import AbstractAsyncContextManager

from bench.faults.cluster import Cluster, new_cluster
from bench.faults.input_faults import poison
from bench.faults.load import Load
from bench.faults.row import Fault
from bench.faults.world import World

POISONABLE = (sys.executable, "-m", "bench.faults.poisoned")
"""A worker that ends natively at a turn with a marker, and is any other one otherwise."""

AWAY_S = 60.0
SHARED_S = 5.0
"""How long two workers serve before one leaves."""


async def rebalance(world: World, _load: Load) -> str:
    """Let a second worker join, and leave for good by SIGTERM."""
    assert isinstance(world, Cluster)
    second = await world.start_worker("second")
    await world.until_served(worker=2, second=2)
    await asyncio.sleep(SHARED_S)
    await second.hold(signal.SIGTERM)
    await world.until_served(worker=4)
    return "each worker has an embedded index of its own: vectors are made again where a partition comes to"


async def take_broker_away(world: World, _load: Load) -> str:
    """Kill the only broker and start it again after a minute."""
    assert isinstance(world, Cluster)
    [node] = world.brokers.nodes
    assert node.process is not None
    await node.process.hold()
    await asyncio.sleep(AWAY_S)
    await world.brokers.start_node(node)
    return ""


async def lose_worker_disk(world: World, _load: Load) -> str:
    """Kill the worker and remove all that it has: tables, words, vectors, its id."""
    assert isinstance(world, Cluster)
    await world.workers["worker"].hold()
    shutil.rmtree(world.directory / "worker")
    await world.start_worker(command=POISONABLE)
    return ""


async def lose_a_broker(world: World, _load: Load) -> str:
    """Kill one of three brokers for good."""
    assert isinstance(world, Cluster)
    process = world.brokers.nodes[1].process
    assert process is not None
    await process.hold()
    return "it stays away"


async def lose_a_disk_too(world: World, _load: Load) -> str:
    """Kill another one of three brokers, of which one is gone, and remove its disk; it comes back empty."""
    assert isinstance(world, Cluster)
    await world.brokers.lose_disk(world.brokers.nodes[2])
    return "writes wait until the empty one has caught up: two copies are wanted"


def new_single_broker() -> AbstractAsyncContextManager[World]:
    """Run one broker and a worker that a record may end."""
    return new_cluster(command=POISONABLE)


def new_three_brokers() -> AbstractAsyncContextManager[World]:
    """Run three brokers and a worker."""
    return new_cluster(3)


FLEET_FAULTS = [
    Fault("a record that ends its worker natively", new_single_broker, poison),
    Fault("a second worker joins and leaves", new_single_broker, rebalance),
    Fault("the worker's disk lost", new_single_broker, lose_worker_disk),
    Fault(f"broker away for {AWAY_S:g} s", new_single_broker, take_broker_away),
    Fault("one of three brokers killed for good", new_three_brokers, lose_a_broker),
    Fault("then the disk of another one lost", new_three_brokers, lose_a_disk_too),
]
