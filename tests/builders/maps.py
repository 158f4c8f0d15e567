"""`DrawMap` over the stores of a partition, with kept maps in a directory."""

from pathlib import Path

from agents.maps.draw_map import DrawMap
from agents.maps.layouts import Layouts, MapMemories
from agents.modes.vector_spaces import VectorSpaces
from agents.ports.clock import Clock
from agents.ports.indexes import VectorIndex
from streams.adapters.map_layouts import LayoutFiles, LayoutThreads
from streams.flow.stores import PartitionStores


def draw_map_over(
    stores: PartitionStores, spaces: VectorSpaces, index: VectorIndex, clock: Clock, directory: Path
) -> DrawMap:
    points = MapMemories(stores.words)
    layouts = Layouts(points, index, LayoutFiles(directory), LayoutThreads(), clock)
    return DrawMap(stores.memories, stores.modes, spaces, index, points, layouts)
