"""Deployments on a broker that replace each other, as a following client finds them."""

import asyncio
import time
from collections import defaultdict
from typing import Any, cast

from modestream_client.answers import Json, Reply
from modestream_client.failures import MemoryClosed
from modestream_client.kafka.following import FollowingTransport
from modestream_client.kafka.successor import DeploymentAddress, SuccessorNotice
from modestream_client.kafka.transport import KafkaTransport
from modestream_client.offsets import Written
from modestream_client.successor import Successor

FIRST = DeploymentAddress("here:9092", "one.")


class FakeDeployments:
    """`sent` are the prefixes that records went to; `tell` writes a successor's record.

    Deployments in `busy` answer after `answer`; those in `hanging` can't be connected to; those in `malformed` have an
    address that can't be. Watches of those in `unwatched` end; `watching` are the prefixes of the open ones.
    """

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.closed: list[str] = []
        self.busy: set[str] = set()
        self.answer = asyncio.Event()
        self.hanging: set[str] = set()
        self.malformed: set[str] = set()
        self.unwatched: set[str] = set()
        self.watching: list[str] = []
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
    """Answers at once, unless busy. It implements what a following client needs of `KafkaTransport`."""

    def __init__(self, address: DeploymentAddress, deployments: FakeDeployments) -> None:
        self._prefix = address.topic_prefix
        self._deployments = deployments
        self._closed = asyncio.Event()

    async def open(self) -> None:
        """Connect to a deployment."""
        if self._prefix in self._deployments.hanging:
            await asyncio.Event().wait()

    async def close(self) -> None:
        """Note that it is closed, and fail what waits."""
        self._deployments.closed.append(self._prefix)
        self._closed.set()

    async def request(self, topic: str, record: Json, **_: Any) -> tuple[Reply, Written]:
        """Note the prefix, and answer."""
        self._deployments.sent.append(self._prefix)
        if self._prefix in self._deployments.busy:
            ends = {asyncio.create_task(one.wait()) for one in (self._closed, self._deployments.answer)}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()
        if self._closed.is_set():
            raise MemoryClosed("the client was closed before the reply came")
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
        if self._prefix in self._deployments.malformed:
            raise ValueError(f"{self._prefix} has no port")
        self._deployments.watching.append(self._prefix)
        notices = self._deployments.notices[self._prefix]
        self._seen, self.last = len(notices), notices[-1] if notices else None

    async def next(self) -> SuccessorNotice | None:
        """Wait for the next notice."""
        while len(self._deployments.notices[self._prefix]) <= self._seen:
            self._deployments.changed.clear()
            if self._prefix in self._deployments.unwatched:
                return None
            await self._deployments.changed.wait()
        self.last = self._deployments.notices[self._prefix][self._seen]
        self._seen += 1
        return self.last

    async def close(self) -> None:
        """Disconnect."""
        if self._prefix in self._deployments.watching:
            self._deployments.watching.remove(self._prefix)
