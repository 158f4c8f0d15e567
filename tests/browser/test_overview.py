"""The overview in a browser: live numbers, a user and all users; dead letters, read and published again."""

from collections.abc import Callable

import pytest
from modestream_client import MemoryClient
from modestream_client.failures import MemoryServiceError
from playwright.sync_api import Locator, Page, ViewportSize, expect

from streams.demo.script import DEMO_USER_ID
from tests.worlds.browser import System, in_thread

CheckAccessibility = Callable[[Page], None]

PHONE: ViewportSize = {"width": 375, "height": 800}

PUBLISHED_MS = 20_000
"""The worker publishes a user's counts every few seconds; then they are pushed to the page."""

TURN = "A turn for a mode of verses <script>alert(1)</script>"


async def remember(system: System, text: str, turn_id: str, mode: str | None = None) -> None:
    """Publish a turn as the demo's user."""
    async with MemoryClient(system.bootstrap, user_id=DEMO_USER_ID) as memory:
        await memory.remember(text, conversation_id="overview", turn_id=turn_id, mode=mode)


def memories_of(page: Page, mode: str) -> Locator:
    return page.locator("#numbers").get_by_role("row", name=mode).get_by_role("cell").first


def open_once(page: Page, address: str, shown: Locator) -> None:
    """Open a page, again and again until it shows what the gateway may not have read yet."""
    for _ in range(PUBLISHED_MS // 500):
        page.goto(address)
        if shown.is_visible():
            return
        page.wait_for_timeout(500)
    raise AssertionError(page.locator("main").inner_text())


def is_within_width(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def test_numbers_are_live_and_all_users_can_be_looked_at(
    page: Page, system: System, check_accessibility: CheckAccessibility
) -> None:
    open_once(page, "/admin/health?user=demo", page.get_by_role("heading", name="How well modes work here"))
    expect(page.get_by_role("heading", name="Health and jobs", level=1)).to_be_visible()
    system.command("declare_mode", {"name": "live", "embedder": "general"})
    in_thread(remember(system, "The overview counts this turn while it is open.", "live", "live"))
    expect(memories_of(page, "live")).to_have_text("1", timeout=PUBLISHED_MS)
    expect(page.get_by_role("heading", name="How well modes work here")).to_be_visible()
    check_accessibility(page)
    page.set_viewport_size(PHONE)
    assert is_within_width(page)
    page.goto("/admin/users")
    expect(page.get_by_role("row", name="demo")).to_be_visible()
    assert is_within_width(page)
    check_accessibility(page)


def test_a_dead_letter_is_published_again_when_its_cause_is_gone(
    page: Page, system: System, check_accessibility: CheckAccessibility
) -> None:
    with pytest.raises(MemoryServiceError, match="unknown_mode"):
        in_thread(remember(system, TURN, "verses", "verses"))
    row = page.get_by_role("row", name="verses").first
    open_once(page, "/admin/dead-letters?user=demo&code=unknown_mode", row)
    expect(row).to_contain_text(TURN)
    check_accessibility(page)
    system.command("declare_mode", {"name": "verses", "embedder": "general"})
    row.get_by_role("link", name="Publish again").click()
    check_accessibility(page)
    page.get_by_role("button", name="Publish 1 record again").click()
    expect(page.get_by_role("status")).to_contain_text("Published 1 record again")
    expect(page.get_by_role("row", name="verses").first).to_contain_text("published again")
    expect(page.get_by_role("link", name="came back")).to_have_count(0)
    page.goto("/admin/health?user=demo")
    expect(memories_of(page, "verses")).to_have_text("1", timeout=PUBLISHED_MS)
