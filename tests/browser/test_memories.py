"""Memories and conversations in a browser: each action, with what it did as Kafka shows it."""

import asyncio
import re
from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Any

import pytest
from modestream_client import MemoryClient, MemoryServiceError
from playwright.sync_api import Page, expect

from streams.demo.script import DEMO_USER_ID
from tests.worlds.browser import System, in_thread, waited_for

CheckAccessibility = Callable[[Page], None]

PROJECT = f"window-{token_hex(4)}"
"""A project of this run alone: what the demo has stays as it is, and what one run forgot is no turn of the next."""

PHONE = {"width": 375, "height": 812}


def remember(system: System, conversation_id: str, *texts: str) -> list[str]:
    """Store turns a minute apart; return the ids of their memories."""

    async def stored() -> list[str]:
        async with MemoryClient(system.bootstrap, user_id=DEMO_USER_ID, project_id=PROJECT) as memory:
            turns = [
                memory.remember(
                    text,
                    conversation_id=conversation_id,
                    speaker="Noor",
                    occurred_at=f"2026-09-01T09:{minute:02}:00Z",
                    mode="general",
                )
                for minute, text in enumerate(texts)
            ]
            return [str(memory.memory_id) for memory in await asyncio.gather(*turns)]

    return in_thread(stored())


def records(system: System, memory_ids: Sequence[str]) -> list[dict[str, Any] | None]:
    """Return the records over Kafka; None for what was forgotten."""

    async def asked() -> list[dict[str, Any] | None]:
        async with MemoryClient(system.bootstrap, user_id=DEMO_USER_ID, project_id=PROJECT) as memory:
            return [await record_of(memory, memory_id) for memory_id in memory_ids]

    async def record_of(memory: MemoryClient, memory_id: str) -> dict[str, Any] | None:
        try:
            return dict(await memory.command("get_memory", {"memory_id": memory_id}))
        except MemoryServiceError as error:
            if error.code != "not_found":
                raise
            return None

    return in_thread(asked())


def modes(system: System, memory_ids: Sequence[str]) -> list[str | None]:
    return [None if record is None else record["mode"] for record in records(system, memory_ids)]


def text(system: System, memory_id: str) -> str:
    [record] = records(system, [memory_id])
    return "" if record is None else str(record["text"])


def test_ticked_memories_are_moved_moved_back_and_forgotten(
    page: Page, system: System, check_accessibility: CheckAccessibility
) -> None:
    texts = ("Zeppelin one <script>alert(1)</script>", "Zeppelin two", "Zeppelin three")
    ids = remember(system, "zeppelins", *texts)
    page.goto(f"/admin/memories?user=demo&project={PROJECT}")
    page.get_by_label("Text contains").fill("zeppelin")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("3 memories")).to_be_visible()
    expect(page.get_by_role("link", name="Zeppelin one <script>alert(1)</script>")).to_be_visible()
    check_accessibility(page)

    page.get_by_label("Select all of this page").check()
    page.get_by_label("Select: Zeppelin three").uncheck()
    page.get_by_label("Move to").select_option("journal")
    page.get_by_role("button", name="Move", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("Moved 2 memories to journal.")
    assert modes(system, ids) == ["journal", "journal", "general"]
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_have_text("Moved 2 memories back.")
    assert modes(system, ids) == ["general"] * 3

    page.get_by_label("Select: Zeppelin one").check()
    page.get_by_label("Select: Zeppelin two").check()
    page.get_by_role("button", name="Forget …").click()
    expect(page.get_by_role("heading", name="Forget 2 memories?")).to_be_visible()
    page.get_by_role("button", name="Forget them").click()
    expect(page.get_by_role("status")).to_have_text("Forgot 2 memories.")
    expect(page.get_by_text("1 memory", exact=True)).to_be_visible()
    assert modes(system, ids) == [None, None, "general"]


def test_a_memory_is_edited_restored_corrected_moved_and_forgotten(
    page: Page, system: System, check_accessibility: CheckAccessibility
) -> None:
    said = 'Hello 👍.\n\nThe backup server is "Atlas" now.'
    [memory_id] = remember(system, "backups", said)
    page.goto(f"/admin/memories/{memory_id}?user=demo")
    expect(page.locator("mark").first).to_have_text('The backup server is "Atlas" now.')
    expect(page.get_by_text("named by the caller")).to_be_visible()
    check_accessibility(page)

    page.get_by_text("Edit the text").click()
    page.get_by_label("Text", exact=True).fill("The backup server is Rhea now.")
    page.get_by_role("button", name="Save the text").click()
    expect(page.get_by_role("status")).to_contain_text("a new version")
    assert text(system, memory_id) == "The backup server is Rhea now."
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("Restored the previous text")
    assert text(system, memory_id) == said
    expect(page.locator(".versions ins")).to_contain_text("Rhea")
    check_accessibility(page)
    page.get_by_role("button", name="Restore this text").click()
    expect(page.get_by_role("status")).to_contain_text("a new version")
    assert text(system, memory_id) == "The backup server is Rhea now."
    page.get_by_role("button", name="Undo").click()
    assert text(system, memory_id) == said

    page.get_by_label("What it is for").select_option("LEARNING")
    page.get_by_role("button", name="Correct").click()
    expect(page.get_by_text("corrected by hand")).to_be_visible()
    page.locator("main").get_by_label("Mode", exact=True).select_option("journal")
    page.get_by_role("button", name="Move", exact=True).click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_have_text("Moved to general.")
    assert modes(system, [memory_id]) == ["general"]

    page.get_by_role("link", name="Forget …").click()
    expect(page.get_by_text("is forgotten with it")).to_be_visible()
    check_accessibility(page)
    page.get_by_role("button", name="Forget it").click()
    expect(page.get_by_role("status")).to_contain_text("Forgot 2 memories.")
    assert records(system, [memory_id]) == [None]


def test_a_conversation_is_read_from_a_memory_and_forgotten_with_its_count_typed(
    page: Page, system: System, check_accessibility: CheckAccessibility
) -> None:
    ids = remember(system, "a/b ü", *(f"Canoe turn {number}" for number in range(15)))
    page.goto(f"/admin/memories/{ids[12]}?user=demo")
    page.get_by_role("link", name="In its conversation").click()
    expect(page.get_by_role("heading", name="Canoe turn 0")).to_be_visible()
    expect(page.locator("li:target")).to_contain_text("Canoe turn 12")
    expect(page.locator(".transcript > li").first).to_contain_text("Canoe turn 2")
    check_accessibility(page)
    page.get_by_role("link", name="From the beginning").click()
    expect(page.locator(".transcript > li").first).to_contain_text("Canoe turn 0")
    page.get_by_role("link", name="Forget the conversation …").click()
    page.get_by_label("Type 15").fill("3")
    page.get_by_role("button", name="Forget the conversation").click()
    expect(page.get_by_text("Nothing was forgotten")).to_be_visible()
    page.get_by_label("Type 15").fill("15")
    page.get_by_role("button", name="Forget the conversation").click()
    expect(page.get_by_role("status")).to_contain_text(re.compile(r"Forgot the conversation a/b ü: \d\d memories\."))
    assert records(system, (ids[0], ids[-1])) == [None, None]


def test_turns_that_a_consolidation_replaced_are_kept(
    page: Page, system: System, check_accessibility: CheckAccessibility
) -> None:
    days = (f"Watered the tomatoes in the greenhouse on day {day}, they look healthy." for day in range(4))
    ids = remember(system, "tomatoes", *days)
    waited_for(lambda: all(found and found["embedding"]["status"] == "ready" for found in records(system, ids)))
    page.goto(f"/admin/consolidations?user=demo&project={PROJECT}")
    page.get_by_role("button", name="Consolidate now").click()
    expect(page.get_by_text("The run is done")).to_be_visible(timeout=30_000)
    page.get_by_role("link", name="What changed").click()
    check_accessibility(page)
    page.get_by_role("listitem").filter(has_text="tomatoes").get_by_role("button", name="Keep its turns").click()
    expect(page.get_by_role("status").first).to_contain_text("Kept its 4 turns")
    assert [found and found["superseded_by"] for found in records(system, ids)] == [None] * 4


@pytest.mark.parametrize(
    "address", ["memories?types=items", "conversations?limit=25", "conversations/flat?project=home"]
)
def test_a_phone_scrolls_in_one_direction(page: Page, address: str) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.goto(f"/admin/{address}&user=demo")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_user_is_forgotten_only_with_the_name_typed(page: Page, check_accessibility: CheckAccessibility) -> None:
    page.goto("/admin/memories?user=demo")
    page.get_by_role("link", name="Forget", exact=True).click()
    check_accessibility(page)
    page.get_by_label("Type demo").fill("demos")
    page.get_by_role("button", name="Forget everything about demo").click()
    expect(page.get_by_role("alert").filter(has_text="Nothing was forgotten")).to_be_visible()
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.get_by_role("link", name="Keep it").click()
    expect(page.get_by_role("heading", name="demo", level=1)).to_be_visible()
