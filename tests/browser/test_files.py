"""A file is added to a conversation, read, and shown next to its pages; one that fails says why."""

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.builders.files import encrypted_pdf, pdf, shown

CheckAccessibility = Callable[[Page], None]

LEASE = pdf([shown("Lease of the flat in Larkin Street."), shown("The deposit is two rents, paid in March.")])


def test_a_file_is_read_and_shown_next_to_its_page(page: Page, check_accessibility: CheckAccessibility) -> None:
    page.goto("/admin/conversations?user=demo&project=home")
    page.locator("main tbody a").first.click()
    page.get_by_label("File", exact=True).set_input_files(
        {"name": "lease.pdf", "mimeType": "application/pdf", "buffer": LEASE}
    )
    page.get_by_role("button", name="Add the file").click()
    expect(page.get_by_role("row", name="lease.pdf").get_by_text("read", exact=True)).to_be_visible(timeout=30_000)
    check_accessibility(page)
    page.get_by_role("link", name="lease.pdf", exact=True).last.click()
    picture = page.get_by_role("img", name="Page 1 of lease.pdf")
    expect(picture).to_be_visible()
    expect(picture).to_have_js_property("naturalWidth", 848)  # of A4, 1,200 pixels high
    page.get_by_role("link", name="Page 2").click()
    expect(page.locator(".part")).to_contain_text("The deposit is two rents")
    check_accessibility(page)
    page.locator(".part").get_by_role("link", name="Memory").click()
    page.get_by_role("link", name="lease.pdf, p. 2").click()
    expect(page.locator(".part mark")).to_contain_text("deposit")


def test_a_file_that_is_dropped_is_uploaded_and_one_that_fails_says_why(
    page: Page, check_accessibility: CheckAccessibility
) -> None:
    page.goto("/admin/files?user=demo&project=home")
    dropped = page.evaluate_handle(
        """(bytes) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([new Uint8Array(bytes)], "locked.pdf", { type: "application/pdf" }));
          return transfer;
        }""",
        [*encrypted_pdf()],
    )
    page.dispatch_event("main", "drop", {"dataTransfer": dropped})
    expect(page.get_by_role("row", name="locked.pdf").get_by_text("failed", exact=True)).to_be_visible(timeout=30_000)
    page.reload()
    expect(page.get_by_text("The PDF has a password.")).to_be_visible()
    check_accessibility(page)
    page.get_by_role("button", name="Read it again").first.click()
    expect(page.locator(".toast")).to_contain_text("read again")
