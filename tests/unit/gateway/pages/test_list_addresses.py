"""Filters and paging of lists: what an address asks for, and where its links lead."""

import pytest

from gateway.pages.requests import EXTRACTED_TYPES, MAX_TRAIL, list_fields, pager_of
from gateway.service.calls import Refused


def test_days_are_whole_and_the_last_one_is_included() -> None:
    fields = list_fields({"since": "2026-02-27", "until": "2026-02-28"})
    assert fields["since"] == "2026-02-27T00:00:00Z"
    assert fields["until"] == "2026-03-01T00:00:00Z"


def test_a_whole_time_stays_as_another_page_gave_it() -> None:
    assert list_fields({"since": "2026-02-27T09:30:00Z"})["since"] == "2026-02-27T09:30:00Z"


def test_all_extracted_types_are_one_choice() -> None:
    assert list_fields({"types": "items"})["types"] == list(EXTRACTED_TYPES)
    assert list_fields({"types": "semantic"})["types"] == ["semantic"]


@pytest.mark.parametrize(
    ("text", "values"), [("a=mail", ["mail"]), ("a=7", ["7", 7]), ("a= true ", ["true", True]), ("a=b=c", ["b=c"])]
)
def test_metadata_is_any_value_that_a_text_may_stand_for(text: str, values: list[object]) -> None:
    assert list_fields({"metadata": text})["filters"] == {"metadata": {"a": values}}


def test_metadata_without_a_name_is_refused() -> None:
    with pytest.raises(Refused, match="NAME=VALUE"):
        list_fields({"metadata": "mail"})


@pytest.mark.parametrize("limit", ["0", "501", "many", "9999999999999999999999"])
def test_a_page_has_a_bound(limit: str) -> None:
    with pytest.raises(Refused, match="rows"):
        list_fields({"limit": limit})


def test_links_lead_to_the_page_behind_and_back_again() -> None:
    first = pager_of({}, "c1")
    assert first.first is None
    assert first.previous is None
    assert first.next == {"cursor": "c1", "trail": "0"}
    third = pager_of({"cursor": "c2", "trail": "0.c1"}, None)
    assert third.next is None
    assert third.previous == {"cursor": "c1", "trail": "0"}
    assert pager_of({"cursor": "c1", "trail": "0"}, "c2").previous == {"cursor": None, "trail": None}


def test_the_way_back_is_bounded() -> None:
    query = {"cursor": "c99", "trail": ".".join(f"c{n}" for n in range(MAX_TRAIL))}
    following = pager_of(query, "c100").next
    assert following is not None
    assert following["trail"].split(".") == [*(f"c{n}" for n in range(1, MAX_TRAIL)), "c99"]
