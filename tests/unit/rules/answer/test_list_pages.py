"""Cursors: what comes back is what was given, and nothing else opens a page."""

import base64
import json
from typing import Any

import pytest

from agents.rules.answer.list_pages import Cursor, decode_cursor, encode_cursor, request_digest
from schemas.failures import Rejected
from schemas.messages.retrieval import ListRequest


def asking(user: str = "ana", **fields: Any) -> ListRequest:
    scope = {"user_id": user, "project_id": "*"}
    return ListRequest.model_validate({"scope": scope, "what": "memories", **fields})


def cursor_of(request: ListRequest) -> Cursor:
    return Cursor(
        request=request_digest(request), began=3, changes=(4, 0, 0, 0), time_us=-5, key="\u00fc\u20ac", total=None
    )


def forged(**changes: Any) -> str:
    fields = json.loads(cursor_of(asking()).model_dump_json()) | changes
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode()


def test_cursor_comes_back_whatever_the_page_length_and_read_after() -> None:
    cursor = cursor_of(asking())
    text = encode_cursor(cursor)
    assert text.isascii()
    assert not {*text} & {*"=+/"}
    assert decode_cursor(asking(cursor=text, limit=7, read_after=9)) == cursor
    assert decode_cursor(asking()) is None


@pytest.mark.parametrize(
    "other",
    [
        {"user": "ben"},
        {"order": "oldest"},
        {"contains": "x"},
        {"mode": "*"},
        {"what": "projects"},
        {"types": ["semantic"]},
        {"role": "user"},
        {"conversation_id": "c1"},
        {"since": "2026-03-01T00:00:00Z"},
        {"embedding_status": "ready"},
        {"include_superseded": True},
    ],
)
def test_cursor_of_another_request_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(Rejected, match="another request") as refused:
        decode_cursor(asking(cursor=encode_cursor(cursor_of(asking())), **other))
    assert refused.value.code == "invalid_value"
    assert refused.value.field == "cursor"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no cursor",
        "\u00fc",
        "AAAA",
        "A" * 100_000,
        base64.urlsafe_b64encode(b"[]").decode(),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        forged(time_us=2**70),
        forged(began="3"),
        forged(key=None),
        forged(total=-1),
        forged(changes=[1, 2, 3]),
        forged(more=1),
    ],
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(Rejected, match="not a cursor") as refused:
        decode_cursor(asking(cursor=text))
    assert refused.value.code == "invalid_value"
    assert refused.value.field == "cursor"
