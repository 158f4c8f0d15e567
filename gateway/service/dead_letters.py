"""Dead letters for one caller: list them, show one, publish them again.

Enters: filters of a caller. Leaves: letters of users and projects that the caller may read; originals on their topics
again, for callers that may manage these. Guaranteed: letters whose user is not certain are shown to callers that may
read everything, and to no other; a letter is published again at most once while this gateway runs.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Protocol

from gateway.service.access import may_everywhere, may_in_project
from gateway.service.audit import audited
from gateway.service.calls import Call, Caller
from gateway.service.dead_letter import DeadLetter, LetterPlace, read_letter, replay_of
from gateway.service.dead_letter_list import DeadLetterList
from gateway.service.failures import Refused
from schemas.messages.records import Outgoing, Record
from schemas.state.policies import Permission

REPLAY_BATCH = 100
"""Records that are published before the time left is looked at: some tens of milliseconds."""


class DeadLetterTopic(Protocol):
    """The topic of dead letters. All raise Refused, `unavailable`."""

    topic_prefix: str

    async def begin(self) -> None:
        """Follow the topic, if that was not begun; return once all that was there is in the list."""

    def read(self, places: Sequence[LetterPlace]) -> AsyncGenerator[Record]:
        """Yield the whole records at these places, without those that are gone."""

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """Write records; return once all are acknowledged."""


class NoDeadLetters:
    """A topic without letters, for a service that shows none."""

    topic_prefix = ""

    async def begin(self) -> None:
        """There is nothing to follow."""

    async def read(self, places: Sequence[LetterPlace]) -> AsyncGenerator[Record]:  # noqa: ARG002
        """Yield nothing."""
        for _ in ():
            yield _

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """Write nothing."""


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Which letters; None admits any value. `until` is the order of the newest one."""

    user: str | None = None
    code: str | None = None
    topic: str | None = None
    until: tuple[int, LetterPlace] | None = None

    def admits(self, letter: DeadLetter) -> bool:
        """True for a letter of these."""
        wanted = ((self.user, letter.user), (self.code, letter.code), (self.topic, letter.topic))
        return all(value is None or value == found for value, found in wanted) and (
            self.until is None or letter.order <= self.until
        )


class LetterPage(NamedTuple):
    """Letters, newest first, and the place of the last one if more follow."""

    items: list[DeadLetter]
    next: str | None


class Tally(NamedTuple):
    """Letters of a filter: all, by code and by topic of those that the other filters admit, and those to replay."""

    total: int
    codes: Counter[str]
    topics: Counter[str]
    replayable: list[DeadLetter]


class DeadLetters:
    """The letters of a deployment."""

    def __init__(self, letters: DeadLetterList, topic: DeadLetterTopic) -> None:
        self._letters = letters
        self._topic = topic
        self._replaying = asyncio.Lock()

    async def begin(self) -> None:
        """Follow the topic. Raises Refused, `unavailable`."""
        await self._topic.begin()

    @property
    def is_full(self) -> bool:
        """True if earlier letters are only in the log."""
        return self._letters.is_full

    def page(self, caller: Caller, wanted: LetterFilter, limit: int, cursor: str | None) -> LetterPage:
        """Return a page of letters. Raises Refused for a wrong cursor."""
        found = list(islice(self._seen(caller, wanted, before=self._order_of(cursor)), limit + 1))
        return LetterPage(found[:limit], str(found[limit - 1].place) if len(found) > limit else None)

    def tally(self, caller: Caller, wanted: LetterFilter) -> Tally:
        """Count the letters that the caller may see."""
        mine = list(self._seen(caller, LetterFilter(user=wanted.user)))
        admitted = [one for one in mine if wanted.admits(one)]
        codes = Counter(one.code for one in mine if wanted.topic in (None, one.topic))
        topics = Counter(one.topic for one in mine if wanted.code in (None, one.code))
        replayable = [one for one in admitted if self.obstacle(caller, one) is None]
        return Tally(len(admitted), codes, topics, replayable)

    def find(self, caller: Caller, letter_id: str) -> DeadLetter:
        """Return one letter. Raises Refused, `not_found`, also for one that the caller may not see."""
        place = LetterPlace.parse(letter_id)
        letter = None if place is None else self._letters.find(place)
        if letter is None or not _may(caller, letter, "read"):
            raise Refused("not_found", "there is no such dead letter among the last ones", names_resource=True)
        return letter

    async def whole(self, letter: DeadLetter) -> Record | None:
        """Return the record of a letter from the log; None if it is gone. Raises Refused, `unavailable`."""
        async with aclosing(self._topic.read([letter.place])) as records:
            return await anext(records, None)

    def is_replayed(self, letter: DeadLetter) -> bool:
        """True if it is known to have been published again."""
        return self._letters.is_replayed(letter.place)

    def came_back(self, letter: DeadLetter) -> LetterPlace | None:
        """Return the letter as which it came back."""
        return self._letters.came_back(letter.place)

    def obstacle(self, caller: Caller, letter: DeadLetter) -> str | None:
        """Return why the caller can't have it published again; None if it can."""
        if letter.obstacle is not None:
            return letter.obstacle
        if self.is_replayed(letter):
            return "it was published again already"
        return None if _may(caller, letter, "manage") else "this key may not manage this user"

    async def replay(self, call: Call, letters: Sequence[DeadLetter]) -> int:
        """Publish the originals of letters again, as many as the call's time allows; return their number.

        Raises Refused for a letter that can't be, before anything is written.
        """
        async with self._replaying:
            for one in letters:
                if not _may(call.caller, one, "manage"):
                    raise Refused("not_allowed", "this key may not manage the user of this letter")
                if (obstacle := self.obstacle(call.caller, one)) is not None:
                    raise Refused("invalid_value", f"this letter can't be replayed: {obstacle}")
            return await self._replay(call, sorted(one.place for one in letters))

    async def _replay(self, call: Call, places: Sequence[LetterPlace]) -> int:
        batch: list[Record] = []
        with audited(call, "replay", {}, letters=[str(one) for one in places]) as counts:
            counts["replayed"] = 0
            async with aclosing(self._topic.read(places)) as records:
                async for record in records:
                    batch.append(record)
                    if len(batch) == REPLAY_BATCH:
                        counts["replayed"] += await self._publish(batch, call.caller.principal)
                        batch = []
                    if time.monotonic() > call.deadline:
                        break
            counts["replayed"] += await self._publish(batch, call.caller.principal)
        return counts["replayed"]

    async def _publish(self, batch: Sequence[Record], principal: str | None) -> int:
        prefix = self._topic.topic_prefix
        # Read again, so checked again: what is published is what is in the log.
        sound = [one for one in batch if read_letter(one, prefix).obstacle is None]
        # Before it is written: cut off in between, a letter may be written, and a second time would be a second copy.
        for one in sound:
            self._letters.mark_replayed(LetterPlace(one.partition, one.offset))
        await self._topic.publish([replay_of(one, prefix, principal) for one in sound])
        return len(sound)

    def _seen(
        self, caller: Caller, wanted: LetterFilter, before: tuple[int, LetterPlace] | None = None
    ) -> Iterator[DeadLetter]:
        return (one for one in self._letters.newest(before) if wanted.admits(one) and _may(caller, one, "read"))

    def _order_of(self, cursor: str | None) -> tuple[int, LetterPlace] | None:
        if cursor is None:
            return None
        place = LetterPlace.parse(cursor)
        letter = None if place is None else self._letters.find(place)
        if letter is None:
            raise Refused("invalid_value", "this page has moved on: begin at the newest letters", "cursor")
        return letter.order


def _may(caller: Caller, letter: DeadLetter, permission: Permission) -> bool:
    """True if the caller may do this with a letter; one of no certain user needs a grant for everything."""
    if letter.user is None:
        return may_everywhere(caller, permission)
    return may_in_project(caller, letter.user, letter.project, permission)
