"""A gateway with keys: a page asks for one, shows its own user alone, and changes nothing for a key that may read."""

import json
import signal
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

EVERYTHING = ["read", "write", "manage", "operate"]

GRANTS = {
    "principals": {
        "reader": [{"user_id": DEMO_USER_ID, "may": ["read"]}],
        "operator": [{"user_id": "*", "may": EVERYTHING}],
    }
}

OPERATORS_KEY = new_key()


@pytest.fixture(scope="module")
def secret() -> str:
    return new_key()


@pytest.fixture(scope="module")
def guarded(system: System, secret: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a second gateway on the same system, with one key that may read the demo's memories."""
    folder = tmp_path_factory.mktemp("guarded")
    key = Key(id="k1", sha256=digest_of(secret), principal="reader")
    operators = Key(id="k2", sha256=digest_of(OPERATORS_KEY), principal="operator", label="the operator's")
    KeyFile(keys=(key, operators)).write(folder / "keys.json")
    (folder / "grants.json").write_text(json.dumps(GRANTS))
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
        gateway.send_signal(signal.SIGTERM)
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


def test_an_operator_makes_a_key_that_is_shown_once_and_revokes_it(
    page: Page, guarded: str, check_accessibility: CheckAccessibility
) -> None:
    page.goto(f"{guarded}/admin/keys?user={DEMO_USER_ID}")
    page.get_by_label("Key").fill(OPERATORS_KEY)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("What it is for").fill("a phone")
    page.get_by_label("Principal").fill("reader")
    page.get_by_role("button", name="Make the key").click()
    made = page.get_by_label("New key").locator("pre")
    expect(made).to_contain_text("ms_")
    check_accessibility(page)
    secret = {"X-API-Key": made.inner_text()}
    waited_for(lambda: httpx.get(f"{guarded}/v1/me", headers=secret).is_success)
    page.reload()
    expect(page.get_by_label("New key")).to_have_count(0)
    row = page.get_by_role("row", name="a phone")
    row.get_by_text("Revoke …").click()
    row.get_by_role("button").click()
    expect(page.get_by_role("row", name="a phone")).to_have_count(0)
    waited_for(lambda: httpx.get(f"{guarded}/v1/me", headers=secret).status_code == 401)
    page.get_by_role("link", name="Settings").click()
    expect(page.get_by_role("row", name="GATEWAY_KEYS")).to_contain_text("changed")
    check_accessibility(page)
