"""`kill -9` of the worker with pending queries: the next worker answers each and commits it."""

import asyncio
from collections import Counter

from tests.worlds.live.processes import Deployment

QUESTIONS = 240
USERS = 8
"""Enough users for every partition."""

ANSWERED = 80
"""Answers before the kill: the first are committed then, some are read, the rest is unread."""


async def test_queries_waiting_at_a_kill_are_answered_by_the_next_worker(deployment: Deployment) -> None:
    worker = await deployment.ready()
    async with deployment.client() as client:
        for user in range(USERS):
            await client.remember(f"The key of u{user} is under the third pot.", user_id=f"u{user}")
        answered: Counter[str] = Counter()
        enough = asyncio.Event()

        async def ask(user: str) -> None:
            found = await client.retrieve("where is the key?", users=user)
            assert [hit.text for hit in found.hits] == [f"The key of {user} is under the third pot."]
            answered[user] += 1
            if answered.total() == ANSWERED:
                enough.set()

        asking = asyncio.gather(*(ask(f"u{number % USERS}") for number in range(QUESTIONS)))
        await enough.wait()
        await worker.kill()
        assert answered.total() < QUESTIONS
        deployment.start()
        await asking
        await deployment.until_processed()
    assert answered == {f"u{user}": QUESTIONS // USERS for user in range(USERS)}
