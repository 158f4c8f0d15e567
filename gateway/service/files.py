"""Files: the bytes of an upload, then its turn; and the bytes of files that a user's memories have.

Enters: a call, and a file that was taken. Leaves: the turn's answer. Guaranteed: bytes are stored before their turn is
published, under a key of that upload alone, so that no removal meets them; a refused upload leaves none. What a killed
gateway leaves is removed by `reconcile`.
"""

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol
from uuid import uuid4

from modestream_client.operations import GET_FILE
from modestream_client.records import canonical
from pydantic import ValidationError

from gateway.service.access import require_scope
from gateway.service.calls import Call, Json, Refused, unavailable
from gateway.service.local_copies import LocalCopies
from gateway.service.memories import Memories
from gateway.service.operations import Operations
from gateway.service.requests import CheckedRequests
from gateway.service.turns import Stored, Turn, Turns
from schemas.failures import Unavailable
from schemas.scopes import Scope
from schemas.state.files import SHA256, ReadFailed, file_prefix, upload_key, upload_uri, without_upload
from schemas.state.memories import derive_memory_id

MAX_FILE_NAME, KEPT_SUFFIX = 255, 20
"""Characters of a file's name, and of its end where it is longer."""

MEDIA_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}", re.ASCII)
OCTETS = "application/octet-stream"

MAX_PICTURE_BYTES = 16 * 1024 * 1024
"""Bytes of drawn pages in memory, the last that were looked at: about 200 pages."""

SETTLED = timedelta(hours=1)
"""Age of bytes whose upload is decided: no refusal removes them any more."""

UNDECIDED = ("timeout", "unavailable", "internal")
"""Codes after which the turn of an upload may be stored all the same."""


class PageDrawer(Protocol):
    """Draws pages in a sandbox, as files are untrusted."""

    async def draw(self, path: Path, page: int) -> bytes:
        """Return a page of a PDF, counted from 1, as WebP. Raises `ReadFailed`."""

    async def close(self) -> None:
        """End its idle processes."""


class FileStore(Protocol):
    """Bytes by key (`schemas.state.files`). Every method raises Unavailable while the store can't be had."""

    async def put(self, key: str, content: IO[bytes]) -> None:
        """Store what a file object has, wholly or not at all."""

    async def find(self, prefix: str) -> Sequence[Any]:
        """Return the bytes under keys with this beginning, each with `key`, `size` and `modified`."""

    def read(self, *keys: str) -> AsyncIterator[bytes]:
        """Return the bytes under the first of these keys that has any, in pieces."""

    async def remove(self, keys: Sequence[str]) -> None:
        """Remove bytes."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was taken, and the fields of its turn; `scope` is without the user."""

    content: IO[bytes]
    size: int
    sha256: str
    name: str
    media_type: str
    scope: Json
    fields: Mapping[str, Any]

    def turn(self, key: str | None) -> Json:
        """Return the fields of its turn; the same file with the same fields, or the same `key`, is the same turn."""
        fields = {**self.fields, "role": "user", "content": self.fields.get("content") or self.name}
        fields["occurred_at"] = fields.get("occurred_at") or datetime.now(UTC).isoformat()
        same = self.fields if key is None else {"key": key, **self.fields}
        about = canonical([same, None if key is not None else str(fields["occurred_at"])])
        resource = {
            "uri": upload_uri(self.sha256),
            "media_type": self.media_type,
            "sha256": self.sha256,
            "name": self.name,
            "bytes": self.size,
        }
        turn_id = f"file-{self.sha256}-{hashlib.sha256(about.encode()).hexdigest()[:32]}"
        return {**fields, "turn_id": turn_id, "resources": [resource]}


class OpenFile(NamedTuple):
    """Bytes that a caller may have."""

    size: int
    name: str
    media_type: str
    pieces: AsyncIterator[bytes]


class Files:
    """Uploads in, their turns out; bytes out."""

    def __init__(
        self,
        requests: CheckedRequests,
        turns: Turns,
        memories: Memories,
        operations: Operations,
        scope: type[Scope],
        store: FileStore | None,
        max_bytes: int,
        drawer: PageDrawer | None = None,
    ) -> None:
        """Without a `store` no file is taken; without a `drawer` no page is drawn."""
        self.max_bytes = max_bytes
        self._requests = requests
        self._turns = turns
        self._memories = memories
        self._operations = operations
        self._scope = scope
        self._store = store
        self._drawer = drawer
        self._copies = LocalCopies()
        self._pictures: OrderedDict[tuple[str, str, int], bytes] = OrderedDict()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """End the drawer's processes at the end, and remove the copies."""
        yield
        self._copies.close()
        if self._drawer is not None:
            await self._drawer.close()

    async def add(self, call: Call, upload: Upload, key: str | None = None) -> Stored:
        """Store a file and its turn. Raises Refused."""
        store, fields = self._kept(), upload.turn(key)
        try:
            scope = self._scope.model_validate(self._requests.full_scope(call, upload.scope)).model_dump()
        except ValidationError as problem:
            raise Refused(
                "invalid_value", "this field of the scope is invalid", str(problem.errors()[0]["loc"][0])
            ) from None
        require_scope(call.caller, call.user_id, scope, "write")
        memory_id = derive_memory_id(scope, fields["conversation_id"], fields["turn_id"])
        boundary = self._requests.key_of(call.user_id)
        place = upload_key(boundary, upload.sha256, memory_id, uuid4().hex)
        try:
            # Also where the turn's bytes are there: an edit or another upload's refusal may be removing them.
            await store.put(place, upload.content)
        except Unavailable:
            raise unavailable() from None
        try:
            stored = await self._turns.add(call, Turn(upload.scope, fields))
        except Refused as refused:
            if refused.code not in UNDECIDED:
                await self._remove(place)
            raise
        if not stored.is_new and await self._is_spare(place):
            await self._remove(place)
        status = "pending" if stored.is_new else await self._status(call, scope, memory_id)
        resource = {name: fields["resources"][0][name] for name in ("uri", "media_type", "sha256", "bytes")}
        return Stored({**stored.body, "resource": {**resource, "status": status}}, stored.is_new)

    async def open(self, call: Call, sha256: str) -> OpenFile:
        """Return the bytes of a file that a memory of the user has. Raises Refused, `not_found`."""
        store = self._kept()
        if SHA256.fullmatch(sha256) is None:
            raise _not_found()
        try:
            about = await self._operations.run(GET_FILE, call, {}, {"sha256": sha256})
        except Refused as refused:
            raise _not_found() if refused.code == "not_found" else refused from None
        try:
            stored = await store.find(file_prefix(self._requests.key_of(call.user_id), sha256))
        except Unavailable:
            raise unavailable() from None
        if not stored:
            raise _not_found()
        pieces = store.read(*sorted(found.key for found in stored))
        return OpenFile(stored[0].size, about.get("name") or sha256, about.get("media_type") or OCTETS, pieces)

    async def picture(self, call: Call, sha256: str, page: int) -> bytes:
        """Return a page of a PDF that a memory of the user has, as WebP. Raises Refused: `not_found`, `unavailable`."""
        opened = await self.open(call, sha256)
        if self._drawer is None:
            raise Refused("not_found", "this gateway can't draw pages of files", "page")
        key = self._requests.key_of(call.user_id), sha256, page
        if (picture := self._pictures.pop(key, None)) is None:
            try:
                async with self._copies.path(key[:2], opened.pieces) as path:
                    picture = await self._drawer.draw(path, page)
            except (Unavailable, FileNotFoundError):
                raise unavailable() from None
            except ReadFailed as failure:
                if failure.code == "unavailable":
                    raise unavailable() from None
                raise Refused("not_found", str(failure), "page") from None
        self._pictures[key] = picture
        while sum(map(len, self._pictures.values())) > MAX_PICTURE_BYTES:
            self._pictures.popitem(last=False)
        return picture

    def _kept(self) -> FileStore:
        if self._store is None:
            raise Refused("unavailable", "this gateway stores no files")
        return self._store

    async def _is_spare(self, place: str) -> bool:
        """True if other bytes of the same turn are there, and stay: those of an upload that was decided long ago."""
        with suppress(Unavailable):
            stored = await self._kept().find(place.rpartition("/")[0] + "/")
            of_turn = [found for found in stored if without_upload(found.key) == without_upload(place)]
            # Both times are the store's.
            since = [found.modified - SETTLED for found in of_turn if found.key == place]
            return any(found.modified < min(since, default=found.modified) for found in of_turn)
        return False

    async def _remove(self, place: str) -> None:
        # `reconcile` removes it otherwise.
        with suppress(Unavailable):
            await self._kept().remove([place])

    async def _status(self, call: Call, scope: Json, memory_id: str) -> str | None:
        """Return the status of a file that was there; None if its turn was forgotten."""
        try:
            others = {name: value for name, value in scope.items() if name not in self._scope.boundary_fields}
            record = await self._memories.get(call, others, memory_id)
        except Refused:
            return None
        return next((resource.get("status") for resource in record["resources"]), None)


def plain_name(name: str) -> str:
    r"""Return the name of a file without folders, as short as it may be.

    >>> plain_name("..\\windows\\win.ini"), plain_name("/etc/..")
    ('win.ini', 'file')
    """
    last = re.split(r"[/\\]", name)[-1]
    plain = "".join(character for character in last if character.isprintable()).strip().strip(".") or "file"
    if len(plain) <= MAX_FILE_NAME:
        return plain
    return plain[: MAX_FILE_NAME - KEPT_SUFFIX] + plain[-KEPT_SUFFIX:]


def plain_media_type(text: str | None) -> str:
    """Return a media type without parameters; that of bytes for an invalid one.

    >>> plain_media_type("Text/HTML; charset=utf-8")
    'text/html'
    """
    media_type = (text or "").partition(";")[0].strip().lower()
    return media_type if MEDIA_TYPE.fullmatch(media_type) else OCTETS


def metadata_of(text: str) -> Json:
    """Return the metadata of a form. Raises Refused."""
    try:
        metadata = json.loads(text)
    except ValueError:
        metadata = None
    if not isinstance(metadata, dict):
        raise Refused("invalid_value", "give `metadata` as a JSON object", "metadata")
    return metadata


def _not_found() -> Refused:
    return Refused("not_found", "this user has no such file", "sha256")
