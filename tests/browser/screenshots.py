"""`make screenshots`: a picture of every page, light and dark, desktop and phone, from the demo's data.

Leaves: `docs/images/<page>-<device>-<scheme>.png`, of 128 colours each, so that all of them stay small.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
from PIL import Image
from playwright.sync_api import Page, ViewportSize, sync_playwright

from streams.demo.script import DEMO_USER_ID
from tests.browser.conftest import ARGUMENTS, CHROMIUM, SCHEMES
from tests.builders.files import encrypted_pdf, pdf, shown
from tests.worlds.browser import System, running_system

IMAGES = Path(__file__).parents[2] / "docs" / "images"

DEVICES: Mapping[str, ViewportSize] = {
    "desktop": {"width": 1280, "height": 800},
    "phone": {"width": 375, "height": 760},
}

COLOURS = 128
"""Colours of a picture: text and flat areas look the same with them."""

SETTLED_MS = 800
"""Milliseconds after which a map is drawn and times are shown."""

OF_USER = f"user={DEMO_USER_ID}"

PAGES = {
    "overview": "/admin/users",
    "start": "/admin/start?everyone=1",
    "user": f"/admin?{OF_USER}",
    "memories": f"/admin/memories?{OF_USER}",
    "conversations": f"/admin/conversations?{OF_USER}",
    "ask": f"/admin/ask?{OF_USER}&project=home&q=When+is+the+viewing+on+Larkin+Street%3F",
    "context": f"/admin/ask?{OF_USER}&project=bakery&show=context&q=Why+is+the+total+zero%3F&budget=1000",
    "map": f"/admin/map?{OF_USER}",
    "modes": f"/admin/modes?{OF_USER}",
    "categories": f"/admin/categories?{OF_USER}&project=bakery",
    "intention": f"/admin/intention?{OF_USER}&project=bakery",
    "settings": f"/admin/settings?{OF_USER}",
    "consolidations": f"/admin/consolidations?{OF_USER}",
    "dead-letters": "/admin/dead-letters",
    "runs": f"/admin/runs?{OF_USER}",
    "health": f"/admin/health?{OF_USER}",
    "pipelines": f"/admin/pipelines?{OF_USER}",
    "add": f"/admin/add?{OF_USER}",
    "files": f"/admin/files?{OF_USER}",
}
"""Addresses by the name of the picture."""

FOLLOWED = (
    ("memory", "memories", "main .says a"),
    ("conversation", "conversations", "main tbody a"),
    ("file", "files", "main tbody th a"),
    ("run", "runs", "main tbody td:nth-child(2) a"),
)
"""Further pictures: each is where the first of these links of a page leads."""


def take_pictures(system: System, images: Path) -> None:
    images.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for device, size in DEVICES.items():
            for scheme in SCHEMES:
                page = browser.new_page(
                    base_url=system.url, viewport=size, color_scheme=scheme, locale="en-GB", timezone_id="Europe/Berlin"
                )
                for name in shown_pages(page):
                    page.wait_for_timeout(SETTLED_MS)
                    picture = images / f"{name}-{device}-{scheme}.png"
                    page.screenshot(path=picture)
                    Image.open(picture).quantize(COLOURS).save(picture, optimize=True)
                page.close()
        browser.close()


def shown_pages(page: Page) -> Iterator[str]:
    """Go from page to page; yield the name of each."""
    for name, address in PAGES.items():
        page.goto(address)
        yield name
    for name, start, link in FOLLOWED:
        page.goto(PAGES[start])
        page.goto(page.locator(link).first.get_attribute("href") or "")
        yield name


def prepare(system: System) -> None:
    """Leave something to see on every page: categories, consolidations, a dead letter."""
    with httpx.Client(base_url=f"{system.url}/v1/users/{DEMO_USER_ID}", headers={"Prefer": "wait=60"}) as http:
        for project, category in (("bakery", "bread"), ("home", "moving")):
            http.put(f"/categories/{category}", json={"project_id": project}).raise_for_status()
            http.post("/consolidations", json={"project_id": project}, timeout=60).raise_for_status()
        for name, media_type, content in (
            (
                "lease.pdf",
                "application/pdf",
                pdf([shown("Lease of the flat in Larkin Street."), shown("The deposit is two rents.")]),
            ),
            ("notes.md", "text/markdown", b"# Flour\n\nThe mill delivers on Tuesdays before six.\n"),
            ("locked.pdf", "application/pdf", encrypted_pdf()),
        ):
            fields = {"conversation_id": "flat", "project_id": "home"}
            http.post("/files", data=fields, files={"file": (name, content, media_type)}).raise_for_status()
        refused = {"conversation_id": "flat", "role": "user", "content": "A line of a poem.", "mode": "poetry"}
        assert http.post("/turns", json=refused).is_client_error


def main() -> int:
    """Start a system of its own and take the pictures."""
    with tempfile.TemporaryDirectory() as directory:
        models = Path(directory) / "models"
        with running_system(Path(directory), models, RUNS_SAMPLE="1") as system:
            prepare(system)
            take_pictures(system, IMAGES)
    sys.stdout.write(f"pictures are in {IMAGES.relative_to(Path.cwd())}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
