"""Ask, modes, intention and consolidations in a browser, and what an action did, seen over Kafka."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.worlds.browser import System

CheckAccessibility = Callable[[Page], None]


def test_a_question_shows_why_each_hit_was_found_and_becomes_a_prompt(
    page: Page, check_accessibility: CheckAccessibility
) -> None:
    page.goto("/admin/ask?user=demo&project=home")
    page.get_by_role("textbox", name="Question").fill("When is the viewing on Larkin Street?")
    page.get_by_role("button", name="Ask", exact=True).click()
    first = page.locator(".hits li").first
    expect(first).to_contain_text("half past five")
    expect(first.locator("mark").first).to_have_text("viewing")
    first.get_by_text("Why it was found").click()
    expect(first.get_by_role("table")).to_contain_text("words of the question that it has", ignore_case=True)
    check_accessibility(page)
    page.get_by_role("link", name="Side by side by mode").click()
    expect(page.get_by_role("heading", name="journal")).to_be_visible()
    page.get_by_role("link", name="As a prompt").click()
    expect(page.get_by_role("img", name="Tokens by section")).to_be_visible()
    expect(page.get_by_role("heading", name="Found for the question")).to_be_visible()
    check_accessibility(page)


def test_a_mode_is_declared_renamed_made_default_and_deleted(
    page: Page, system: System, check_accessibility: CheckAccessibility
) -> None:
    page.goto("/admin/modes?user=demo&project=home")
    check_accessibility(page)
    page.get_by_label("Name", exact=True).fill("recipes")
    page.get_by_label("Description").fill("what to cook")
    page.get_by_role("button", name="Declare").click()
    expect(page.get_by_role("status").first).to_have_text("Declared recipes.")
    page.locator("main").get_by_role("link", name="recipes", exact=True).click()
    check_accessibility(page)
    page.get_by_label("New name").fill("cooking")
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("status").first).to_have_text("Renamed recipes to cooking.")
    modes = {mode["name"]: mode for mode in system.command("list_modes", {})["modes"]}
    assert modes["cooking"]["description"] == "what to cook"
    assert "recipes" not in modes
    page.locator("main select[name=name]").select_option("cooking")
    page.get_by_role("button", name="Set the default").click()
    expect(page.get_by_role("status").first).to_have_text("Turns that name no mode now get cooking.")
    assert system.command("list_modes", {})["user_default"] == "cooking"
    page.locator("main").get_by_role("link", name="cooking", exact=True).click()
    page.get_by_label("to confirm").fill("cooking")
    page.get_by_role("button", name="Delete the mode").click()
    expect(page.get_by_role("status").first).to_have_text("Deleted cooking.")
    assert "cooking" not in {mode["name"] for mode in system.command("list_modes", {})["modes"]}


def test_an_intention_is_set_and_a_consolidation_shows_what_it_changed(
    page: Page, system: System, check_accessibility: CheckAccessibility
) -> None:
    page.goto("/admin/intention?user=demo&project=bakery")
    page.get_by_label("Goals").fill("open the café in spring")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_have_text("Saved the intention.")
    goals = system.command("get_intention", {}, "bakery")["goals"]
    assert "open the café in spring" in [goal["text"] for goal in goals]
    check_accessibility(page)
    page.get_by_role("link", name="Consolidations").click()
    page.get_by_role("button", name="Consolidate now").click()
    expect(page.get_by_text("The run is done")).to_be_visible(timeout=30_000)
    page.get_by_role("link", name="What changed").click()
    expect(page.get_by_role("heading", name="Changes of a consolidation")).to_be_visible()
    check_accessibility(page)


def test_categories_are_declared_and_deleted(page: Page, check_accessibility: CheckAccessibility) -> None:
    page.goto("/admin/categories?user=demo&project=bakery")
    page.get_by_label("Name").fill("bread")
    page.get_by_label("Description").fill("flour, dough and baking")
    page.get_by_role("button", name="Declare").click()
    expect(page.get_by_role("heading", name="bread", level=1)).to_be_visible()
    check_accessibility(page)
    page.get_by_text("Delete this category").click()
    page.get_by_role("button", name="Delete bread").click()
    expect(page.get_by_role("status").first).to_have_text("Deleted bread.")
