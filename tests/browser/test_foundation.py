"""Every page has the same head: pickers, navigation, theme; and errors are pages."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

CheckAccessibility = Callable[[Page], None]


def test_the_only_user_is_chosen_and_pickers_hold_on_every_page(
    page: Page, check_accessibility: CheckAccessibility
) -> None:
    page.goto("/")
    expect(page).to_have_url("/admin")
    page.locator("#pick-mode").select_option("journal")
    expect(page).to_have_url("/admin?user=demo&mode=journal")
    page.get_by_role("link", name="Memories", exact=True).click()
    expect(page).to_have_url("/admin/memories?user=demo&mode=journal")
    expect(page.locator("#pick-mode")).to_have_value("journal")
    check_accessibility(page)


def test_times_are_shown_in_the_zone_of_the_viewer(page: Page) -> None:
    page.goto("/admin/memories?user=demo&project=home&order=oldest")
    expect(page.locator("time").first).to_have_text("21 Sept 2026, 18:40")


def test_the_theme_is_kept(page: Page) -> None:
    page.goto("/admin")
    page.get_by_role("button", name="Dark or light").click()
    page.goto("/admin/memories?user=demo")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_path_that_is_none_is_a_page_that_leads_back(page: Page, check_accessibility: CheckAccessibility) -> None:
    page.goto("/admin/nothing")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    check_accessibility(page)
    page.get_by_role("link", name="Go to the overview").click()
    expect(page).to_have_url("/admin")
