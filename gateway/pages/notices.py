"""What a page says about the action before it: an action redirects with the notice's name and its count."""

from collections.abc import Mapping

NOTICES = {
    "moved": "Memories moved to the mode {name}: {count}.",
    "moved_one": "Moved to the mode {name}.",
    "moved_back": "Memories moved back: {count}.",
    "forgotten": "Memories forgotten: {count}.",
    "edited": "The text was changed; it is a new version.",
    "restored": "The text before stands again.",
    "corrected": "The interaction mode was corrected.",
    "filtered": "Saved what may find and read it.",
    "saved": "Saved {name}.",
    "renamed": "Renamed to {name}.",
    "deleted": "Deleted {name}.",
    "started": "Started. This page shows the progress.",
    "replayed": "Published {count} again.",
}
"""Sentences by name. Only `count`, a number, and `name`, shown as text, come from the address."""


def notice_of(query: Mapping[str, str]) -> str | None:
    """Return the sentence that an address asks for, if it is one of ours."""
    sentence = NOTICES.get(query.get("notice", ""))
    if sentence is None:
        return None
    count = query.get("count", "")
    return sentence.format(count=count if count.isdecimal() else "0", name=query.get("name", "")[:64])
