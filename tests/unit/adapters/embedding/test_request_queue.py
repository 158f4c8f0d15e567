"""The queue before an embedder's process: fair by user, queries first, suspects alone."""

import asyncio

from streams.adapters.embedding.process.child_pipes import EmbeddingRequest, RequestQueue, TextDeaths
from streams.adapters.embedding.process.frames import PASSAGE, QUERY
from streams.fair_queue import FairQueue


def request(text: str, kind: int = PASSAGE) -> EmbeddingRequest:
    return EmbeddingRequest(kind, "", text, asyncio.get_running_loop().create_future())


def test_fair_queue_serves_keys_in_turn() -> None:
    queue: FairQueue[str] = FairQueue()
    for key, item in [("alice", "a1"), ("alice", "a2"), ("alice", "a3"), ("bob", "b1"), ("eve", "e1"), ("bob", "b2")]:
        queue.put(key, item)
    assert [queue.get() for _ in range(len(queue))] == ["a1", "b1", "e1", "a2", "b2", "a3"]


async def test_flood_of_one_user_delays_another_by_one_text() -> None:
    queue = RequestQueue(1, TextDeaths())
    for number in range(1000):
        queue.put("alice", request(f"alice {number}"))
    in_pipe = queue.next([])
    assert in_pipe is not None
    queue.put("bob", request("bob"))
    assert queue.next([in_pipe]) is None
    assert [each.text for each in (queue.next([]), queue.next([])) if each] == ["alice 1", "bob"]


async def test_queries_pass_waiting_passages() -> None:
    queue = RequestQueue(1, TextDeaths())
    queue.put("alice", request("passage"))
    queue.put("alice", request("query", QUERY))
    assert [each.text for each in (queue.next([]), queue.next([])) if each] == ["query", "passage"]


async def test_abandoned_requests_are_skipped() -> None:
    queue, late = RequestQueue(1, TextDeaths()), request("late", QUERY)
    queue.put("alice", late)
    queue.put("bob", request("next", QUERY))
    late.answer.cancel()
    found = queue.next([])
    assert found is not None
    assert found.text == "next"


async def test_suspect_is_sent_alone_and_counted_alone() -> None:
    deaths = TextDeaths()
    bad, good = request("bad"), request("good")
    deaths.add([bad, good], [bad.key, good.key])
    deaths.add([bad, good], [bad.key, good.key])
    assert deaths.of(bad) == deaths.of(good) == 1
    queue = RequestQueue(6, deaths)
    queue.put("alice", bad)
    queue.put("bob", request("other"))
    assert queue.next([request("running")]) is None
    first = queue.next([])
    assert first is bad
    assert queue.next([bad]) is None
    deaths.add([bad], [bad.key])
    deaths.clear(good)
    assert deaths.of(bad) == 2
    assert deaths.of(good) == 0


async def test_pipe_is_refilled_when_half_of_its_passages_are_answered() -> None:
    queue, in_pipe = RequestQueue(4, TextDeaths()), list[EmbeddingRequest]()
    for number in range(12):
        queue.put("ana", request(str(number)))
    sent = []
    for _ in range(6):
        before = len(in_pipe)
        while found := queue.next(in_pipe):
            in_pipe.append(found)
        sent.append(len(in_pipe) - before)
        in_pipe.pop(0)
    assert sent == [4, 0, 2, 0, 2, 0]


async def test_query_does_not_wait_until_the_pipe_is_refilled() -> None:
    queue = RequestQueue(4, TextDeaths())
    for number in range(8):
        queue.put("ana", request(str(number)))
    in_pipe = [chosen for _ in range(4) if (chosen := queue.next([]))]
    assert queue.next(in_pipe) is None
    queue.put("ben", request("where?", QUERY))
    found = queue.next(in_pipe)
    assert found is not None
    assert found.kind == QUERY
