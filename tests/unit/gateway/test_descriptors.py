"""The descriptors of the gateway: its limit is raised at the start, and connections leave room for others."""

import resource
from collections.abc import Iterator

import pytest

from gateway.http.limits import Limits
from gateway.server import OTHER_DESCRIPTORS, bounded_by_descriptors, granted_descriptors

LOW = 512
"""A soft limit below what is wanted, and above what this process has open."""


@pytest.fixture(autouse=True)
def low() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (LOW, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_soft_limit_is_raised() -> None:
    assert granted_descriptors(LOW + 100) == LOW + 100
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == LOW + 100


def test_higher_limit_stays() -> None:
    assert granted_descriptors(LOW - 100) == LOW


def test_connections_have_what_the_system_grants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    bounded = bounded_by_descriptors(Limits())
    assert bounded.connections == 1024 - OTHER_DESCRIPTORS
    assert bounded.connections_per_address < bounded.connections
