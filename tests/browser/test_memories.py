"""Memories and conversations in a browser: each action with what it did, as Kafka sees it."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.worlds.browser import DEMO_USER_ID, System, in_thread

from modestream_client import MemoryClient

CheckAccessibility = Callable[[Page], None]

PROJECT = "window"
"""A project of these tests' own: what the demo has stays as it is."""

TEXT = "The bicycle stands in the cellar <script>alert(1)</script> behind the boxes."


def remember(system: System, conversation_id: str, *texts: str) -> list[str]:
    """Store turns; return the ids of their memories."""

    async def stored() -> list[str]:
        async with MemoryClient(system.bootstrap, user_id=DEMO_USER_ID) as memory:
            accepted = [
                await memory.remember(
                    text,
                    conversation_id=conversation_id,
                    project_id=PROJECT,
                    turn_id=f"{conversation_id}-{number}",
                    role="user",
                    mode="general",
                )
                for number, text in enumerate(texts)
            ]
            return [one.memory_id for one in accepted]

    return in_thread(stored())
