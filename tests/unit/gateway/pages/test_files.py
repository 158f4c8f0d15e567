"""Files: the list, an upload by form, a file's text next to a picture of its page, and reading it again."""

from typing import IO, Any

import pytest

from gateway.service.service import MemoryService
from schemas.state.files import ReadFailed
from tests.builders.records import listed_memory, memory_record
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over, told_after

SHA256 = "a" * 64


def listed_file(**fields: Any) -> dict[str, Any]:
    return {
        "memory_id": "m1",
        "conversation_id": "c1",
        "scope": {"user_id": "ana", "project_id": "home"},
        "mode": "journal",
        "occurred_at": "2026-03-01T09:30:00Z",
        "uri": f"file:{SHA256}",
        "name": "report.pdf",
        "media_type": "application/pdf",
        "sha256": SHA256,
        "bytes": 120_000,
        "status": "ready",
        "code": None,
        "error": None,
        "reader": "pdf",
        "characters": 900,
        "pages": 3,
        "seconds": None,
        "parts": 4,
    } | fields


def part(text: str = "The spare key is under the pot.", **fields: Any) -> dict[str, Any]:
    place = {"start": 100, "end": 100 + len(text), "page": 2, "start_s": None, "end_s": None}
    return {"memory_id": "p1", "mode": "journal", "text": text, **place, **fields}


class Bytes:
    """Bytes in memory: implements `gateway.service.files.FileStore`."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}

    async def put(self, key: str, content: IO[bytes]) -> None:
        self.stored[key] = content.read()

    async def find(self, prefix: str) -> list[Any]:
        class Stored:
            key, size = prefix + "m1", 9

        return [Stored()]

    async def read(self, *keys: str) -> Any:
        yield b"some "
        yield b"file"

    async def remove(self, keys: Any) -> None:
        """Nothing is removed here."""


class Drawer:
    """Draws a page as its number: implements `gateway.service.files.PageDrawer`."""

    def __init__(self) -> None:
        self.drawn: list[tuple[bytes, int]] = []

    async def draw(self, path: Any, page: int) -> bytes:
        if page > 3:
            raise ReadFailed("unreadable", f"The PDF has no page {page}.")
        self.drawn.append((path.read_bytes(), page))
        return b"picture %d" % page

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def wire() -> FakeWire:
    wire = FakeWire()
    counts = {"pending": 1, "ready": 1, "failed": 1}
    files = [
        listed_file(),
        listed_file(memory_id="m2", name="<b>.png", media_type="image/png", status="pending", pages=None),
        listed_file(memory_id="m4", name="talk.pptx", media_type=None, reader="pptx+ocr", pages=2),
        listed_file(memory_id="m5", name="costs.xlsx", media_type=None, reader="xlsx", pages=1),
        listed_file(memory_id="m3", name="scan.pdf", status="failed", error="The PDF has a password.", pages=None),
    ]
    wire.results["list_files"] = {"files": files, "total": 120, "counts": counts}
    wire.results["get_file_parts"] = {"file": listed_file(), "parts": [part()], "first": 0, "total": 1}
    wire.results["get_file"] = {"name": "report.pdf", "media_type": "application/pdf"}
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    return wire


def commands(wire: FakeWire, name: str) -> list[dict[str, Any]]:
    return [record for record in wire.records if record.get("command") == name]


async def test_the_list_says_what_became_of_each_file(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/files?user=ana")).text
    assert "PDF, 3 pages" in page
    assert "PPTX, 2 slides" in page
    assert "XLSX, 1 sheet<" in page
    assert "120 kB" in page
    assert "&lt;b&gt;.png" in page
    assert "The PDF has a password." in page
    assert 'hx-get="/admin/files/state?user=ana&amp;memory=m2' in page
    assert "skip=50" in page
    assert commands(wire, "list_files")[0]["arguments"] == {"all_projects": True, "skip": 0, "limit": 50}


async def test_a_status_and_a_project_are_filters(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        await http.get("/admin/files?user=ana&project=home&status=failed&skip=50")
    [asked] = commands(wire, "list_files")
    assert asked["scope"]["project_id"] == "home"
    assert asked["arguments"] == {"status": "failed", "all_projects": False, "skip": 50, "limit": 50}


async def test_failed_files_are_read_again(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        done = await http.post("/admin/files/retry?user=ana", data={"project_id": "home"})
        assert "read again" in await told_after(http, done)
    assert commands(wire, "retry_failed")[0]["scope"]["project_id"] == "home"


async def test_an_upload_becomes_a_turn_of_the_conversation(wire: FakeWire) -> None:
    store = Bytes()
    fields = {"conversation_id": "c1", "back": "conversation", "project_id": "home"}
    async with pages_over(MemoryService(wire, files=store)) as http:
        done = await http.post("/admin/files?user=ana", data=fields, files={"file": ("report.pdf", b"%PDF-1.7")})
    assert done.headers["location"] == "/admin/conversations/c1?user=ana&of=home#files"
    [turn] = [record for record in wire.records if record["schema"] == "turn.v1"]
    assert turn["conversation_id"] == "c1"
    assert turn["resources"][0]["name"] == "report.pdf"
    assert list(store.stored.values()) == [b"%PDF-1.7"]


async def test_a_script_gets_the_address_to_go_to(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire, files=Bytes())) as http:
        headers = {"Accept": "application/json"}
        done = await http.post("/admin/files?user=ana", files={"file": ("a.txt", b"text")}, headers=headers)
    assert done.status_code == 201
    assert done.headers["location"] == "/admin/files?user=ana"


async def test_a_form_without_a_file_is_refused(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire, files=Bytes())) as http:
        refused = await http.post("/admin/files?user=ana", files={"file": ("", b"")})
    assert refused.status_code == 422
    assert "Choose a file." in refused.text


async def test_evidence_is_marked_in_the_text_of_its_page(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/memories/m1/file?user=ana&page=2&start=104&end=113")).text
    assert "<mark>spare key</mark>" in page
    assert f'src="/admin/files/{SHA256}/picture?user=ana&amp;page=2"' in page
    assert "Page 2 of 3" in page
    assert commands(wire, "get_file_parts")[0]["arguments"]["page"] == 2


async def test_a_file_with_pages_opens_at_the_page_of_its_position(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/memories/m1/file?user=ana&start=104&end=113")).text
    assert [asked["arguments"].get("page") for asked in commands(wire, "get_file_parts")] == [None, 2]
    assert "Page 2 of 3" in page


async def test_a_page_is_drawn_once_and_checked_each_time(wire: FakeWire) -> None:
    drawer = Drawer()
    async with pages_over(MemoryService(wire, files=Bytes(), drawer=drawer)) as http:
        for _ in range(2):
            picture = await http.get(f"/admin/files/{SHA256}/picture?user=ana&page=2")
    assert picture.content == b"picture 2"
    assert picture.headers["content-type"] == "image/webp"
    assert drawer.drawn == [(b"some file", 2)]
    assert len(commands(wire, "get_file")) == 2


async def test_a_page_that_can_not_be_drawn_is_not_found(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire, files=Bytes(), drawer=Drawer())) as http:
        picture = await http.get(f"/admin/files/{SHA256}/picture?user=ana&page=9")
    assert picture.status_code == 404


@pytest.mark.parametrize(("media_type", "status"), [("image/png", 200), ("image/svg+xml", 404), ("text/html", 404)])
async def test_only_pictures_without_scripts_are_shown_as_they_are(
    wire: FakeWire, media_type: str, status: int
) -> None:
    wire.results["get_file"] = {"name": "x", "media_type": media_type}
    async with pages_over(MemoryService(wire, files=Bytes())) as http:
        picture = await http.get(f"/admin/files/{SHA256}/picture?user=ana")
    assert picture.status_code == status
    assert "sandbox" in picture.headers["content-security-policy"] or status == 404


async def test_a_conversation_lists_its_files_and_takes_more(wire: FakeWire) -> None:
    conversation = {"conversation_id": "c1", "scope": {"user_id": "ana", "project_id": "home"}, "turns": 1}
    conversation |= {"first": "2026-03-01T09:30:00Z", "last": "2026-03-01T09:30:00Z", "speakers": [], "modes": {}}
    wire.results["list.v1"] = lambda record: {
        "items": [conversation] if record["what"] == "conversations" else [listed_memory()],
        "next": None,
        "total": 1,
    }
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/conversations/c1?user=ana")).text
    assert "report.pdf" in page
    assert 'name="back" value="conversation"' in page
    assert commands(wire, "list_files")[0]["arguments"]["conversation_id"] == "c1"


async def test_the_evidence_of_a_memory_leads_to_its_page(wire: FakeWire) -> None:
    uri = f"file:{SHA256}"
    evidence = [{"memory_id": "m1", "resource": uri, "start": 104, "end": 113, "page": 2}]
    resource = {"uri": uri, "media_type": "application/pdf", "name": "report.pdf", "status": "ready"}
    turn = memory_record("m1", "report.pdf", resources=[resource])
    document = memory_record("p1", "spare key", origin="extracted", type="document", evidence=evidence, confidence=0.8)
    document |= {"stability": 0.9, "kind": None, "categories": []}
    wire.results["get_memory"] = lambda record: turn if record["arguments"]["memory_id"] == "m1" else document
    wire.results["list_modes"] = {"modes": [], "user_default": None, "project_default": None}
    wire.results["retrieve.v1"] = {"hits": []}
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/memories/p1?user=ana")).text
    assert "/admin/memories/m1/file?user=ana&amp;uri=file%3A" + SHA256 + "&amp;page=2&amp;start=104&amp;end=113" in page
