"""Files of pages: vendored ones are what they say, addresses change with the content, and all of it is light."""

import gzip
import hashlib
import json
import re

from gateway.pages.pages import STATIC, asset
from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over

MAX_WEIGHT = 250_000
"""Bytes, compressed, of everything that the first visit of all pages together loads."""


def test_vendored_files_are_listed_with_their_digest_and_licence() -> None:
    vendored = json.loads((STATIC / "vendor" / "vendored.json").read_text())
    files = {path.name for path in (STATIC / "vendor").iterdir()} - {"vendored.json"}
    assert set(vendored) == files
    for name, known in vendored.items():
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == known["sha256"]
        assert {"package", "version", "licence"} <= set(known)


async def test_a_file_is_kept_for_ever_under_the_digest_of_its_content() -> None:
    async with pages_over(MemoryService(FakeWire())) as http:
        answer = await http.get(asset("app.css"))
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"].startswith("text/css")
        old = await http.get(re.sub("static/[0-9a-f]+/", "static/0/", asset("app.css")))
        assert old.headers["cache-control"] == "no-cache"


async def test_no_file_outside_of_the_folder_is_served() -> None:
    async with pages_over(MemoryService(FakeWire())) as http:
        for name in ("nothing.css", "../door.py", "%2e%2e/door.py"):
            assert (await http.get(f"/admin/static/0/{name}")).status_code == 404


def test_all_files_together_are_light() -> None:
    weight = sum(len(gzip.compress(path.read_bytes())) for path in STATIC.rglob("*") if path.is_file())
    assert weight <= MAX_WEIGHT
