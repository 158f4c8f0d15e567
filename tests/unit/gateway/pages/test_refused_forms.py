"""A form that is refused comes back with what was typed, once; what a link says is never a notice."""

from gateway.pages.refill import refilled
from gateway.service.calls import Caller
from gateway.service.service import MemoryService
from schemas.state.policies import Grant
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over

FORM = (
    '<form method="post" action="/a"><input type="hidden" name="h" value="1"><input name="n" value="">'
    '<textarea name="t">\nold</textarea><select name="s"><option value="x" selected>X</option>'
    '<option value="y">Y</option></select><input type="checkbox" name="c" value="1" checked></form>'
    '<form method="post" action="/b"><input name="n" value="mine"></form>'
)


def test_fields_of_the_form_are_filled_and_no_others() -> None:
    page = refilled(FORM, "/a", {"h": ["2"], "n": ['"<b>'], "t": ["new <i>"], "s": ["y"]}, "n")
    assert page == (
        '<form method="post" action="/a"><input type="hidden" name="h" value="1">'
        '<input name="n" value="&quot;&lt;b&gt;" aria-invalid="true" aria-describedby="refusal">'
        '<textarea name="t">\nnew &lt;i&gt;</textarea><select name="s"><option value="x">X</option>'
        '<option value="y" selected>Y</option></select><input type="checkbox" name="c" value="1"></form>'
        '<form method="post" action="/b"><input name="n" value="mine"></form>'
    )


async def test_a_refused_form_leads_back_to_its_page() -> None:
    wire = FakeWire()
    wire.results["list_categories"] = {"categories": [], "uncategorised": 0}
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    async with pages_over(MemoryService(wire)) as http:
        page = str(http.base_url) + "/admin/categories?user=u1&project=p1"
        fields = {"name": " ", "description": "flour & dough"}
        refused = await http.post("/admin/categories?user=u1&project=p1", data=fields, headers={"Referer": page})
        assert refused.headers["location"] == "/admin/categories?user=u1&project=p1"
        again = (await http.get(refused.headers["location"])).text
        later = (await http.get(refused.headers["location"])).text
    assert 'value="flour &amp; dough"' in again
    assert "Name is empty." in again
    assert "Name is empty." not in later


async def test_a_foreign_page_is_not_led_back_to() -> None:
    async with pages_over(MemoryService(FakeWire())) as http:
        headers = {"Referer": "https://elsewhere.example/admin/categories"}
        answer = await http.post("/admin/categories?user=u1&project=p1", data={"name": ""}, headers=headers)
    assert answer.status_code == 422


async def test_an_address_makes_no_notice() -> None:
    wire = FakeWire()
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/memories?user=u1&notice=deleted&name=EVERYTHING")).text
    assert "EVERYTHING." not in page


async def test_a_reader_is_shown_no_form_that_changes_something() -> None:
    wire = FakeWire()
    wire.results["list_categories"] = {"categories": [], "uncategorised": 0}
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    reader = Caller("k1", "reader", grants=(Grant.model_validate({"user_id": "u1", "may": ["read"]}),))
    async with pages_over(MemoryService(wire), reader) as http:
        page = (await http.get("/admin/categories?user=u1&project=p1")).text
    assert "No categories yet" in page
    assert 'method="post"' not in page
