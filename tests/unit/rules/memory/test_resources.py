"""Which resources are read, and where their parts are cited."""

import pytest

from agents.rules.memory.resources import may_fetch, with_statuses
from schemas.state.memories import Resource
from tests.builders.memories import made

PREFIXES = ("https://wiki.example.org/pages/", "http://127.0.0.1:8000/allowed", "s3://scans/2026/")


@pytest.mark.parametrize(
    "uri",
    [
        "https://wiki.example.org/pages/a.html",
        "HTTPS://Wiki.Example.org/pages/a.html?version=2",
        "http://127.0.0.1:8000/allowed/a",
        "s3://scans/2026/a.pdf",
    ],
)
def test_what_lies_under_a_prefix_may_be_fetched(uri: str) -> None:
    assert may_fetch(uri, PREFIXES)


@pytest.mark.parametrize(
    "uri",
    [
        "http://wiki.example.org/pages/a.html",
        "https://wiki.example.org.evil.example/pages/a.html",
        "https://wiki.example.org:444/pages/a.html",
        "https://wiki.example.org@evil.example/pages/a.html",
        "https://wiki.example.org/pages/../secret",
        "https://wiki.example.org/pages/%2e%2e/secret",
        "https://wiki.example.org/pages/%252e%252e/secret",
        "https://wiki.example.org/pages/..%5csecret",
        "https://wiki.example.org/pagesofothers/a.html",
        "http://127.0.0.1:8000/allowedtoo/a",
        "file:///etc/passwd",
        "file:/etc/passwd",
        "ftp://wiki.example.org/pages/a",
        "https://[broken/pages/a",
        "",
    ],
)
def test_nothing_else_may_be_fetched(uri: str) -> None:
    assert not may_fetch(uri, PREFIXES)


def test_nothing_may_be_fetched_by_default() -> None:
    assert not may_fetch("https://wiki.example.org/pages/a.html", ())


def test_a_new_resource_without_text_is_pending() -> None:
    turn = made("a", 1, resources=(Resource(uri="file:a"), Resource(uri="file:b", text="caption"), Resource(uri="x:c")))
    read = with_statuses(turn, None, lambda uri: uri.startswith("file:"))
    assert [resource.status for resource in read.resources] == ["pending", None, None]


def test_the_same_resource_stays_as_it_was() -> None:
    before = made("a", 1, resources=(Resource(uri="file:a", status="ready", parts=3),))
    now = made("a", 1, resources=(Resource(uri="file:a"),))
    assert with_statuses(now, before, lambda _: True).resources == before.resources


def test_another_type_of_the_same_resource_is_read_again() -> None:
    before = made("a", 1, resources=(Resource(uri="file:a", status="failed", code="no_reader", error="None."),))
    now = made("a", 1, resources=(Resource(uri="file:a", media_type="text/plain"),))
    assert with_statuses(now, before, lambda _: True).resources[0].status == "pending"
