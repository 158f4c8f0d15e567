"""A first visit that ends in success: a turn by hand, a sample, an import; keys, pipelines, exports."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.worlds.browser import System

CheckAccessibility = Callable[[Page], None]

USERS = ("newcomer", "sample")


@pytest.fixture(autouse=True, scope="module")
def forgotten(system: System) -> Iterator[None]:
    """Leave the demo's user alone again."""
    yield
    for user in USERS:
        httpx.delete(f"{system.url}/v1/users/{user}", params={"confirm": user}, timeout=30)


def test_a_first_turn_is_remembered_and_found(page: Page, check_accessibility: CheckAccessibility) -> None:
    page.goto("/admin/start?everyone=1")
    expect(page.get_by_text("curl -X POST")).to_be_visible()
    expect(page.get_by_role("link", name="Ask about it")).to_be_visible()
    check_accessibility(page)
    page.get_by_label("User").first.fill("newcomer")
    page.get_by_label("What should be remembered?").fill("The spare key hangs behind the pantry door.")
    page.get_by_role("button", name="Remember it").click()
    expect(page.get_by_role("status")).to_contain_text("Ask for it now")
    page.get_by_label("What do you want to recall?").fill("Where is the spare key?")
    page.keyboard.press("Enter")
    expect(page.locator(".hits")).to_contain_text("behind the pantry door")


def test_a_sample_ends_with_an_answer(page: Page, check_accessibility: CheckAccessibility) -> None:
    page.goto("/admin/start?everyone=1")
    page.get_by_role("button", name="Load the sample conversations").click()
    expect(page.get_by_role("status")).to_contain_text("20 turns")
    expect(page.locator(".hits > li").first).to_contain_text("24th of April")
    check_accessibility(page)


def test_an_export_is_downloaded_and_imported(
    page: Page, tmp_path: Path, check_accessibility: CheckAccessibility
) -> None:
    page.goto("/admin/export?user=demo&project=home")
    check_accessibility(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    file = tmp_path / "memories.jsonl"
    download.value.save_as(file)
    assert json.loads(file.read_text().splitlines()[0])["schema"] == "turn.v1"
    page.goto("/admin/add?user=newcomer")
    check_accessibility(page)
    page.get_by_label("File").set_input_files(file)
    page.get_by_label("Where it is from").select_option("jsonl")
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_text("Imported:")).to_be_visible(timeout=30_000)
    expect(page.get_by_role("status").get_by_role("link", name="modes")).to_have_attribute(
        "href", re.compile(r"/modes\?.*suggest=1")
    )


def test_a_step_of_a_pipeline_is_changed_after_a_check_and_taken_back(
    page: Page, check_accessibility: CheckAccessibility
) -> None:
    page.goto("/admin/pipelines?user=demo")
    check_accessibility(page)
    page.get_by_text("Rerank", exact=True).click()
    page.locator("details[open]").get_by_label("Candidates").fill("9")
    page.locator("details[open]").get_by_role("button", name="Check the change").click()
    expect(page.get_by_role("row", name="candidates")).to_contain_text("9")
    check_accessibility(page)
    page.get_by_role("button", name="Save as a revision").click()
    expect(page.get_by_role("status")).to_contain_text("Saved as revision")
    page.get_by_role("button", name="Go back to revision 0").click()
    expect(page.get_by_role("status")).to_contain_text("Revision 0 counts again")


def test_a_memory_is_hidden_and_shown_again(page: Page, system: System) -> None:
    page.goto("/admin/ask?user=demo&project=home&q=When+is+the+viewing+on+Larkin+Street")
    page.locator(".hits a.plain").first.click()
    page.get_by_role("button", name="Hide from searches").click()
    expect(page.get_by_text("Hidden: no search finds it.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Hidden: no search finds it.")).to_be_hidden()
