"""What the vector indexes of a process have in common, one for each partition."""

import asyncio
from dataclasses import dataclass, field

from streams.adapters.vectors.embedded.boundary_cache import BoundaryCache
from streams.adapters.vectors.embedded.open_shards import OpenShards
from streams.adapters.vectors.embedded.paced_opening import UntilQuiet, no_requests
from streams.adapters.vectors.embedded.token_cache import KeptTokens


@dataclass(frozen=True, slots=True)
class EdgeResources:
    """Bounds and orders over all partitions."""

    cache: BoundaryCache = field(default_factory=BoundaryCache)
    tokens: KeptTokens = field(default_factory=KeptTokens)
    open_shards: OpenShards = field(default_factory=OpenShards)
    until_quiet: UntilQuiet = no_requests
    """Waits for requests, to which an index gives way after it has opened a collection."""
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
