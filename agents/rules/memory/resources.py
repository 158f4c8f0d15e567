"""Resources of turns: which are read, the document memories that they become, and where these stand in them. Pure."""

import uuid
from collections.abc import Callable, Collection, Sequence
from urllib.parse import unquote, urlsplit

from modestream_client.records import canonical

from agents.rules.text.dates import find_dates
from agents.rules.text.tokenizer import extract_entities
from schemas.state.files import FileStatuses, FileText, uploaded_sha256
from schemas.state.memories import ID_NAMESPACE, Memory, ReadMemory, Resource, Support

PART_CONFIDENCE, PART_STABILITY = 0.8, 0.9
"""Those of a segment of a document: it says so, and is seldom about the user."""

MAX_NAME_CHARS = 80
"""Characters of a file's name in a citation."""

IsReadable = Callable[[str], bool]
"""True for a URI whose bytes the worker may have."""


def may_fetch(uri: str, prefixes: Collection[str]) -> bool:
    """True if a URI lies under one of these prefixes, whatever its path says of folders above."""
    try:
        wanted, allowed = _located(uri), [_located(prefix) for prefix in prefixes]
    except ValueError:
        return False
    if wanted is None:
        return False
    origin, path = wanted
    folders = path.replace("\\", "/").split("/")
    if ".." in folders or "." in folders:
        return False
    return any(
        place is not None and place[0] == origin and path.startswith(place[1].removesuffix("/") + "/")
        for place in allowed
    )


def _located(uri: str) -> tuple[tuple[str, str], str] | None:
    """Return scheme and authority, and the decoded path; None for addresses not fetched. Raises ValueError."""
    parts = urlsplit(uri)
    if parts.scheme.lower() not in ("http", "https", "s3") or not parts.netloc or "@" in parts.netloc:
        return None
    path = parts.path
    while (decoded := unquote(path)) != path:
        path = decoded
    return (parts.scheme.lower(), parts.netloc.lower()), path or "/"


def with_statuses(memory: Memory, before: Memory | None, is_readable: IsReadable) -> Memory:
    """Return a turn whose resources are pending where they are to be read; one that `before` had, too, is as it was."""
    earlier = {} if before is None else {resource.uri: resource for resource in before.resources}

    def status_of(resource: Resource) -> Resource:
        same = earlier.get(resource.uri)
        if same is not None and same.published() == resource.published():
            return same
        is_read = resource.text is None and is_readable(resource.uri)
        return resource.model_copy(update={"status": "pending"}) if is_read else resource

    if not memory.resources:
        return memory
    return memory.model_copy(update={"resources": tuple(map(status_of, memory.resources))})


def uploads_of(memory: Memory | None) -> set[str]:
    """Return the hashes of the uploaded files of a turn."""
    if memory is None:
        return set()
    hashes = (uploaded_sha256(resource.uri) for resource in memory.resources if resource.text is None)
    return {sha256 for sha256 in hashes if sha256 is not None}


def statuses_of(memory: Memory) -> FileStatuses:
    """Count the resources of a turn by their reading status."""
    statuses = [resource.status for resource in memory.resources]
    return FileStatuses(**{name: statuses.count(name) for name in ("pending", "ready", "failed")})


def with_resource(memory: Memory, changed: Resource) -> Memory:
    resources = tuple(changed if each.uri == changed.uri and each.text is None else each for each in memory.resources)
    return memory.model_copy(update={"resources": resources})


def find_resource(memory: Memory | None, uri: str) -> Resource | None:
    """Return the resource of a turn that is read under this URI."""
    resources = () if memory is None else memory.resources
    return next((each for each in resources if each.uri == uri and each.text is None), None)


def derive_part_id(memory_id: str, uri: str, number: int) -> str:
    """Return the id of a document memory: UUIDv5 of its turn's memory, its resource, and its number in it."""
    return str(uuid.uuid5(ID_NAMESPACE, canonical(["part", memory_id, uri, number])))


def part_ids(turn: Memory, resource: Resource) -> list[str]:
    """Return the ids that the document memories of a resource have, or may have while it is read."""
    return [derive_part_id(turn.memory_id, resource.uri, number) for number in range(resource.parts)]


def is_part(memory: Memory) -> bool:
    supports = memory.item.supports if memory.item else ()
    return len(supports) == 1 and supports[0].is_part


def with_turn_metadata(memory: Memory, read: ReadMemory) -> Memory:
    """Return a document memory with the metadata of its turn, any other one as it is."""
    if not is_part(memory) or memory.item is None:
        return memory
    turn = read(memory.item.supports[0].memory_id)
    return memory if turn is None else memory.model_copy(update={"metadata": turn.metadata})


MAX_QUOTED_PARTS = 4
"""Parts of a file that stand with its turn in a context: about 1,200 tokens at most."""


def with_quotes(turn: Memory, parts: Sequence[Memory]) -> Memory:
    """Return a turn whose files have the text of these parts of them, each after its place."""

    def quoted(resource: Resource) -> Resource:
        of_file = [
            (part.item.supports[0].start, f"{cited_place(part, turn.resources)}: {part.text}")
            for part in parts[:MAX_QUOTED_PARTS]
            if part.item is not None and part.item.supports[0].resource == resource.uri
        ]
        text = QUOTES_SEPARATOR.join(quote for _, quote in sorted(of_file))
        return resource.model_copy(update={"text": text}) if text and resource.text is None else resource

    return turn.model_copy(update={"resources": tuple(map(quoted, turn.resources))})


QUOTES_SEPARATOR = " \u2026 "


def part_support(turn: Memory, uri: str, text: FileText, number: int) -> Support:
    """Return the support by a turn's file for its document memory of this number."""
    segment = text.segments[number]
    words = text.text[segment.start : segment.end]
    return Support(
        **support_of_turn(turn),
        type="document",
        kind=None,
        text=words,
        start=segment.start,
        end=segment.end,
        resource=uri,
        page=segment.page,
        start_s=segment.start_s,
        end_s=segment.end_s,
        confidence=PART_CONFIDENCE,
        stability=PART_STABILITY,
        entities=extract_entities(words),
        times=find_dates(words, turn.occurred_at),
        is_part=True,
    )


def support_of_turn(turn: Memory) -> dict[str, object]:
    return {
        "memory_id": turn.memory_id,
        "turn_id": turn.turn_id or "",
        "text_hash": turn.versions[turn.current].text_hash,
        "occurred_at": turn.occurred_at,
        "source": turn.source,
    }


def cited_place(part: Memory, resources: Sequence[Resource]) -> str:
    """Return the place of a document memory as a citation has it, such as `report.pdf, p. 3`."""
    [support] = part.item.supports if part.item else ()
    resource = next((each for each in resources if each.uri == support.resource), None)
    name = " ".join((file_name(resource) if resource else "file").split())[:MAX_NAME_CHARS]
    if support.page is not None:
        return f"{name}, p. {support.page}"
    if support.start_s is not None:
        minutes, seconds = divmod(int(support.start_s), 60)
        return f"{name}, {minutes}:{seconds:02}"
    return name


def file_name(resource: Resource) -> str:
    last = "" if uploaded_sha256(resource.uri) else unquote(resource.uri.rstrip("/").rpartition("/")[2])
    return resource.name or last or "file"
