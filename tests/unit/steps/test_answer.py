"""`AnswerQuery`: how many requests of a kind are answered at a time."""

import asyncio
from typing import Any, cast

import pytest

from agents.retrieval.list_memories import List
from schemas.messages.retrieval import ListRequest
from streams.flow.requests.channel import ReplyOptions
from streams.flow.steps.answer import MAX_ANSWERED_AT_ONCE, AnswerQuery, OwnWrites
from streams.foreground import Foreground
from streams.observability.metrics import Meters
from streams.partition.commit import AppliedOffsets
from tests.builders.turns import record
from tests.fakes.clock import FakeClock


class CountedLists:
    """Lists that take some rounds of the event loop; `most` is the largest number of them at a time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.answered: list[str] = []

    async def answer(self, request: ListRequest) -> tuple[dict[str, Any], list[Any]]:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(5):
            await asyncio.sleep(0)
        self.now -= 1
        self.answered.append(request.scope.user_id)
        return {}, []


def asking(user: str = "ana", **fields: Any) -> ListRequest:
    return ListRequest.model_validate({"scope": {"user_id": user}, "what": "memories", **fields})


async def answer_all(lists: CountedLists, requests: list[ListRequest]) -> None:
    agent = cast("List", lists)
    unused = cast("Any", None)
    own_writes = OwnWrites(AppliedOffsets(), FakeClock(), Foreground())
    answer = AnswerQuery(unused, unused, lambda _: agent, unused, unused, unused, "", own_writes, Meters(), unused)
    await asyncio.gather(*(answer(request, record({}), ReplyOptions()) for request in requests))


@pytest.mark.parametrize(
    ("fields", "most"),
    [
        ({}, MAX_ANSWERED_AT_ONCE // 2),
        ({"conversation_id": "c1"}, MAX_ANSWERED_AT_ONCE // 2),
        ({"contains": "tea"}, 1),
        ({"conversation_id": "c1", "types": ["semantic"]}, 1),
    ],
)
async def test_lists_that_read_all_texts_run_one_at_a_time(fields: dict[str, Any], most: int) -> None:
    lists = CountedLists()
    await answer_all(lists, [asking(**fields) for _ in range(20)])
    assert lists.most == most
    assert len(lists.answered) == 20


async def test_lists_of_texts_are_answered_users_in_turn() -> None:
    lists = CountedLists()
    await answer_all(lists, [*(asking(contains="tea") for _ in range(9)), asking("ben", contains="tea")])
    assert lists.answered.index("ben") <= 2
