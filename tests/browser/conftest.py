"""Fixtures of browser tests: one system for all, and a page of its own for each test.

Every test fails if its page wrote an error to the console, or broke the content security policy.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize, expect, sync_playwright

from tests.builders.exported_models import english_models
from tests.worlds.browser import System, running_system

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)

ARGUMENTS = ("--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
"""WebGL by software: there is no graphics card."""

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

DESKTOP: ViewportSize = {"width": 1280, "height": 900}

PATIENCE_MS = 30_000
"""How long a page may take while other tests have the processor."""

expect.set_options(timeout=PATIENCE_MS)

EXPECTED_ERRORS = ("Failed to load resource: the server responded with a status of 4",)
"""What the console says of pages that are refused; tests of refusals cause it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of pages, before anything is started for them, where there is no browser."""
    if CHROMIUM is None:
        missing = pytest.mark.skip(reason=f"none of {', '.join(NAMES)} is on the path; CHROMIUM= names one")
        for item in items:
            if "browser" in getattr(item, "fixturenames", ()):
                item.add_marker(missing)


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """The system with the demo's memories. Tests share it: what one changes, it names with its own ids."""
    models = english_models(tmp_path_factory)
    with running_system(tmp_path_factory.mktemp("browser"), models) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture
def context(browser: Browser, system: System) -> Iterator[BrowserContext]:
    """A browser without cookies, at the address of the gateway."""
    opened = browser.new_context(base_url=system.url, viewport=DESKTOP, timezone_id="Europe/Berlin", locale="en-GB")
    opened.set_default_timeout(PATIENCE_MS)
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page that writes no errors to its console."""
    errors: list[str] = []

    def keep(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(EXPECTED_ERRORS):
            errors.append(message.text)

    opened = context.new_page()
    opened.on("console", keep)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    assert not errors


@pytest.fixture
def check_accessibility() -> Callable[[Page], None]:
    """Return a check that axe finds nothing on a page, in light and in dark."""

    def check(page: Page) -> None:
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            found = Axe().run(page)
            assert found.violations_count == 0, f"{scheme}: {found.generate_report()}"

    return check
