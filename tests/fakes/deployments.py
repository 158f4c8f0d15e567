"""Deployments on a broker that replace each other, as a following client finds them."""

import asyncio
import time
from collections import defaultdict
from typing import Any, cast

from modestream_client.answers import Json, Reply
from modestream_client.kafka.following import FollowingTransport
from modestream_client.kafka.successor import DeploymentAddress, Successor, SuccessorNotice
from modestream_client.kafka.transport import KafkaTransport
from modestream_client.offsets import Written

FIRST = DeploymentAddress("here:9092", "one.")


class FakeDeployments:
    """`sent` are the prefixes that records went to; `tell` writes a successor's record."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.closed: list[str] = []
        self.missing: set[str] = set()
        self.notices: defaultdict[str, list[SuccessorNotice]] = defaultdict(list)
        self.changed = asyncio.Event()

    def tell(self, former: str, state: Any, new: str, *, pause_s: float = 60.0) -> None:
        """Write what an operator's switch writes."""
        pauses_until = time.monotonic() + pause_s if state == "pausing" else 0.0
        self.notices[former].append(SuccessorNotice(Successor(state=state, topic_prefix=new), pauses_until))
        self.changed.set()

    def client(self, timeout: float = 5.0) -> FollowingTransport:
        """Return a client of the first deployment."""

        def connect(address: DeploymentAddress) -> KafkaTransport:
            return cast("KafkaTransport", FakeTransport(address, self))

        return FollowingTransport(FIRST, timeout, connect, lambda address: FakeWatch(address, self))


class FakeTransport:
    """Answers at once. It implements what a following client needs of `KafkaTransport`."""

    def __init__(self, address: DeploymentAddress, deployments: FakeDeployments) -> None:
        self._prefix = address.topic_prefix
        self._deployments = deployments

    async def open(self) -> None:
        """Connect to a deployment."""

    async def close(self) -> None:
        """Note that it is closed."""
        self._deployments.closed.append(self._prefix)

    async def request(self, topic: str, record: Json, **_: Any) -> tuple[Reply, Written]:
        """Note the prefix, and answer."""
        self._deployments.sent.append(self._prefix)
        return Reply(result={}), Written(0, 0)


class FakeWatch:
    """Implements `modestream_client.kafka.following.Watch`."""

    def __init__(self, address: DeploymentAddress, deployments: FakeDeployments) -> None:
        self._prefix = address.topic_prefix
        self._deployments = deployments
        self._seen = 0
        self.last: SuccessorNotice | None = None

    async def open(self) -> None:
        """Read all notices."""
        notices = self._deployments.notices[self._prefix]
        self._seen, self.last = len(notices), notices[-1] if notices else None

    async def next(self) -> SuccessorNotice | None:
        """Wait for the next notice."""
        while len(self._deployments.notices[self._prefix]) <= self._seen:
            self._deployments.changed.clear()
            await self._deployments.changed.wait()
        self.last = self._deployments.notices[self._prefix][self._seen]
        self._seen += 1
        return self.last

    async def close(self) -> None:
        """Nothing is open."""
