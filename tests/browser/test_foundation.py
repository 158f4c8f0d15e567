"""Every page has the same head: pickers, navigation, theme; and errors are pages."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

CheckAccessibility = Callable[[Page], None]


def test_the_only_user_is_chosen_and_pickers_hold_on_every_page(
    page: Page, check_accessibility: CheckAccessibility
) -> None:
    page.goto("/")
    expect(page).to_have_url("/admin")
    page.get_by_role("link", name="Memories", exact=True).click()
    page.locator("#pick-mode").select_option("journal")
    expect(page).to_have_url("/admin/memories?user=demo&mode=journal")
    page.get_by_role("link", name="Conversations", exact=True).click()
    expect(page).to_have_url("/admin/conversations?user=demo&mode=journal")
    expect(page.locator("#pick-mode")).to_have_value("journal")
    check_accessibility(page)


def test_times_are_shown_in_the_zone_of_the_viewer(page: Page) -> None:
    page.goto("/admin/memories?user=demo&project=home&order=oldest")
    expect(page.locator("time").first).to_have_text("21 Sept, 18:40")


def test_the_theme_is_kept_and_goes_back_to_the_systems(page: Page) -> None:
    page.goto("/admin")
    page.get_by_role("button", name="Theme: system").click()
    page.get_by_role("button", name="Theme: light").click()
    page.goto("/admin/memories?user=demo")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Theme: dark").click()
    expect(page.locator("html")).not_to_have_attribute("data-theme", "dark")


def test_a_question_is_asked_from_any_page_by_a_key(page: Page) -> None:
    page.goto("/admin/memories?user=demo")
    page.keyboard.press("/")
    page.keyboard.type("Who is Biscuit?")
    page.keyboard.press("Enter")
    expect(page).to_have_url("/admin/ask?user=demo&q=Who+is+Biscuit%3F")


def test_the_palette_goes_to_a_page(page: Page) -> None:
    page.goto("/admin/memories?user=demo")
    page.keyboard.press("Control+k")
    page.get_by_label("Go to a page, or ask").fill("cons")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Consolidations", level=1)).to_be_visible()


def test_a_memory_opens_beside_the_list_and_back_closes_it(page: Page, check_accessibility: CheckAccessibility) -> None:
    page.goto("/admin/memories?user=demo&project=home")
    page.locator(".says a").first.click()
    panel = page.get_by_role("complementary", name="Memory", exact=True)
    expect(panel.get_by_role("heading", level=1)).to_be_visible()
    assert "/admin/memories/" in page.url
    check_accessibility(page)
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(page).to_have_url("/admin/memories?user=demo&project=home")
    expect(page.locator(".says a").first).to_be_focused()


def test_pages_are_a_drawer_on_a_phone(page: Page, check_accessibility: CheckAccessibility) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto("/admin/memories?user=demo")
    expect(page.get_by_role("navigation", name="Pages")).to_be_hidden()
    page.get_by_role("button", name="Pages").click()
    check_accessibility(page)
    page.get_by_role("link", name="Map", exact=True).click()
    expect(page.get_by_role("heading", name="Map", level=1)).to_be_visible()


def test_a_refused_form_comes_back_with_what_was_typed(page: Page) -> None:
    page.goto("/admin/modes?user=demo&project=home")
    page.get_by_label("Name", exact=True).fill("journal")
    page.get_by_label("Description").fill("another diary")
    page.get_by_role("button", name="Declare").click()
    expect(page.get_by_role("alert")).to_contain_text("mode journal exists already")
    expect(page.get_by_label("Description")).to_have_value("another diary")
    expect(page.locator("main [aria-invalid]")).to_have_value("journal")
    page.reload()
    expect(page.get_by_role("alert")).to_be_empty()


def test_a_path_that_is_none_is_a_page_that_leads_back(page: Page, check_accessibility: CheckAccessibility) -> None:
    page.goto("/admin/nothing")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    check_accessibility(page)
    page.get_by_role("link", name="Go to the overview").click()
    expect(page).to_have_url("/admin?user=demo")


@pytest.mark.parametrize(
    "address",
    [
        "?user=demo",
        "/runs?user=demo",
        "/categories?user=demo&project=bakery",
        "/consolidations?user=demo",
        "/ask?user=demo&project=home&q=rent&show=modes",
        "/contexts/none?user=demo",
    ],
)
def test_axe_finds_nothing_on_further_pages(page: Page, address: str, check_accessibility: CheckAccessibility) -> None:
    page.goto(f"/admin{address}")
    check_accessibility(page)
