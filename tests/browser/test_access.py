"""A gateway with keys: a page asks for one, shows its own user alone, and changes nothing for a key that may read."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from gateway.keys.key_file import Key, KeyFile, digest_of, new_key
from streams.demo.script import DEMO_USER_ID
from streams.up.layout import free_port
from tests.worlds.browser import System, waited_for
from tests.worlds.live.processes import spawn

CheckAccessibility = Callable[[Page], None]

READER = {"principals": {"reader": [{"user_id": DEMO_USER_ID, "may": ["read"]}]}}


@pytest.fixture(scope="module")
def secret() -> str:
    return new_key()


@pytest.fixture(scope="module")
def guarded(system: System, secret: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a second gateway on the same system, with one key that may read the demo's memories."""
    folder = tmp_path_factory.mktemp("guarded")
    key = Key(id="k1", sha256=digest_of(secret), principal="reader")
    KeyFile(keys=(key,)).write(folder / "keys.json")
    (folder / "grants.json").write_text(json.dumps(READER))
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "BROKER": f"kafka://{system.bootstrap}",
        "GATEWAY_BIND": address,
        "GATEWAY_KEYS": str(folder / "keys.json"),
        "AUTHORIZATION": str(folder / "grants.json"),
    }
    environment = {f"MODESTREAM_{name}": value for name, value in settings.items()}
    gateway = spawn("gateway", Path(folder / "log"), environment)
    try:
        waited_for(lambda: is_ready(f"http://{address}/ready"))
        yield f"http://{address}"
    finally:
        gateway.terminate()
        gateway.wait(30)


def is_ready(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.TransportError:
        return False


def test_a_key_opens_its_own_users_pages_and_changes_nothing(
    page: Page, guarded: str, secret: str, check_accessibility: CheckAccessibility
) -> None:
    memories = f"{guarded}/admin/memories?user={DEMO_USER_ID}"
    page.goto(memories)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    check_accessibility(page)
    page.get_by_label("Key").fill("ms_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Key").fill(secret)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(memories)
    expect(page.get_by_role("heading", name="Memories")).to_be_visible()
    page.goto(f"{guarded}/admin/memories?user=somebody-else")
    expect(page.get_by_role("heading", name="Not allowed")).to_be_visible()
    check_accessibility(page)
    page.goto(f"{guarded}/admin/modes?user={DEMO_USER_ID}")
    expect(page.get_by_text("read-only")).to_be_visible()
    expect(page.locator("main form[method=post]")).to_have_count(0)
    page.goto(memories)
    page.get_by_role("button", name="Sign out").click()
    page.goto(memories)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
