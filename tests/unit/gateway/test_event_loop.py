"""Requests are handled on the event loop alone: a thread for each costs more than all else at the door."""

import asyncio

import httpx
from anyio.to_thread import current_default_thread_limiter

TURN = {"conversation_id": "c1", "role": "user", "content": "The kettle is blue."}


async def test_requests_need_no_thread(http: httpx.AsyncClient) -> None:
    threads = current_default_thread_limiter()
    usual, threads.total_tokens = threads.total_tokens, 1
    try:
        async with threads, asyncio.timeout(5):
            answers = [
                await http.post("/v1/users/u1/turns", json=TURN),
                await http.get("/v1/users/u1/memories"),
                await http.post("/v1/users/u1/jobs/reconcile", json={}),
                await http.get("/v1/me"),
                await http.get("/v1/users"),
            ]
    finally:
        threads.total_tokens = usual
    assert [answer.status_code < 300 for answer in answers] == [True] * len(answers)
