"""How values and texts are shown: times, counts, shares, colours, the contract's words in plain ones, marked spans.

Pure. Offsets of spans are Unicode code points.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from markupsafe import Markup
from pydantic_core import to_json

from gateway.service.calls import Refused
from schemas.state.files import uploaded_sha256


def moment(value: str | None) -> Markup:
    """Return a time as an element: UTC without scripts, the viewer's zone with them."""
    if not value:
        return Markup('<span class="none">-</span>')
    try:
        shown = datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        return Markup('<span class="none">{0}</span>').format(value)
    return Markup('<time datetime="{0}">{1} {2:%b %Y, %H:%M} UTC</time>').format(value, shown.day, shown)


SENTENCES = {
    "not_allowed": "Your key may not do this.",
    "timeout": "The memory service took too long. Nothing may have changed: check, then try again.",
    "unavailable": "The memory service does not answer. Try again in a moment.",
    "internal": "Something failed in the service. Its log has the reason.",
}
"""Sentences of refusals on pages, by code; other codes show the service's own sentence."""


def refusal(refused: Refused) -> str:
    """Return a refusal as a sentence.

    >>> refusal(Refused("invalid_value", "name is empty", "name"))
    'Name is empty.'
    """
    return SENTENCES.get(refused.code) or sentence(refused.message).rstrip(".") + "."


def count(value: int) -> str:
    """Return a number in groups of three.

    >>> count(12345)
    '12,345'
    """
    return f"{value:,}"


def percent(share: float | None) -> str:
    """Return a share as percent.

    >>> percent(0.125)
    '12.5 %'
    """
    return "-" if share is None else f"{100 * share:.1f} %"


def plural(number: int, singular: str, many: str | None = None) -> str:
    """Return a number with its noun.

    >>> plural(1, "memory", "memories"), plural(2, "turn")
    ('1 memory', '2 turns')
    """
    return f"{count(number)} {singular if number == 1 else many or singular + 's'}"


def sentence(text: str) -> str:
    """Return a text with a capital at its beginning.

    >>> sentence("its meaning, word by word")
    'Its meaning, word by word'
    """
    return text[:1].upper() + text[1:]


def letter_reason(text: str) -> str:
    """Return a reason without its field and without the command that a client would send.

    >>> letter_reason("mode: the mode 'poetry' is not declared; declare_mode declares it")
    "The mode 'poetry' is not declared"
    """
    field, _, rest = text.partition(": ")
    return sentence((rest if rest and " " not in field else text).removesuffix("; declare_mode declares it"))


def json_text(value: Any) -> str:
    r"""Return JSON as a person reads it.

    >>> json_text({"a": "é"})
    '{\n  "a": "é"\n}'
    """
    return to_json(value, indent=2).decode()


def run_ms(value: float) -> str:
    """Return a time of milliseconds with three digits.

    >>> run_ms(0.1234), run_ms(12.34), run_ms(1234.0)
    ('0.12 ms', '12.3 ms', '1.23 s')
    """
    if value >= 1000:
        return f"{value / 1000:,.2f} s"
    return f"{value:.1f} ms" if value >= 10 else f"{value:.2f} ms"


def usd(value: float) -> str:
    """Return US dollars, small amounts to a ten-thousandth of a cent.

    >>> usd(1.5), usd(0.00012)
    ('$1.50', '$0.000120')
    """
    return f"${value:,.2f}" if value >= 1 else f"${value:.6f}"


def run_value(value: Any) -> str:
    """Return a field of a run's input or outcome.

    >>> run_value(["a", "b"]), run_value({"evidence": 3}), run_value(True), run_value(None)
    ('a, b', 'evidence 3', 'yes', 'none')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {run_value(field)}" for name, field in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(run_value, value)) or "none"
    return "none" if value is None else str(value)


def run_scope(value: Any) -> str:
    """Return the projects of a run.

    >>> run_scope("*"), run_scope(["a", "b"]), run_scope(None)
    ('all projects', 'a, b', '-')
    """
    return "-" if value is None else "all projects" if value == "*" else run_value(value)


FILE_KINDS = {
    "application/pdf": "PDF",
    "image/": "Image",
    "audio/": "Sound",
    "video/": "Video",
    "text/html": "Web page",
    "text/csv": "Table",
    "message/rfc822": "E-mail",
    "application/json": "JSON",
    "application/vnd.openxmlformats-officedocument.wordprocessingml": "Document",
    "application/vnd.openxmlformats-officedocument.presentationml": "Slides",
    "application/vnd.openxmlformats-officedocument.spreadsheetml": "Table",
    "text/": "Text",
}
"""Kinds of files by the beginning of their media type."""


def file_kind(file: Mapping[str, Any]) -> str:
    """Return the kind of a file, by its media type, else by the end of its name.

    >>> file_kind({"media_type": "image/png", "name": "x"}), file_kind({"media_type": None, "name": "a.tar"})
    ('Image', 'TAR')
    """
    media_type, suffix = str(file.get("media_type") or ""), str(file.get("name") or "").rpartition(".")[2]
    kinds = (kind for beginning, kind in FILE_KINDS.items() if media_type.startswith(beginning))
    return next(kinds, suffix.upper() if 0 < len(suffix) <= 5 and suffix != file.get("name") else "File")


def file_pages(file: Mapping[str, Any]) -> str:
    """Return how many pages, slides or sheets a file has.

    >>> file_pages({"pages": 2, "reader": "pptx+ocr"}), file_pages({"pages": 1, "reader": "pdf"})
    ('2 slides', '1 page')
    """
    places = {"pptx": "slide", "xlsx": "sheet"}
    return plural(file["pages"], places.get(str(file["reader"]).partition("+")[0], "page"))


def file_size(size: int | None) -> str:
    """Return bytes as a person says them.

    >>> file_size(900), file_size(1_250_000), file_size(None)
    ('900 bytes', '1.2 MB', '')
    """
    if size is None:
        return ""
    if size < 1000:
        return plural(size, "byte")
    return f"{size / 1000:.0f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def clock(seconds: float) -> str:
    """Return seconds as minutes and seconds.

    >>> clock(64.2)
    '1:04'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class TypeName(NamedTuple):
    """A type of memories, for one of them and for all."""

    singular: str
    plural: str


TYPES: Mapping[str, TypeName] = {
    "episodic": TypeName("turn", "turns"),
    "semantic": TypeName("fact", "facts, preferences, decisions"),
    "procedural": TypeName("how-to", "how things are done"),
    "state_object": TypeName("goal or problem", "goals, errors, open questions"),
    "document": TypeName("part of a file", "parts of files"),
    "working": TypeName("latest turn", "latest turns of conversations"),
}


def type_name(name: str) -> str:
    """Return the name of a memory's type; types of a deployment's own steps keep theirs.

    >>> type_name("episodic"), type_name("own_type")
    ('turn', 'own type')
    """
    return TYPES[name].singular if name in TYPES else name.replace("_", " ")


FILTERS: Mapping[str, Callable[..., Any]] = {
    "moment": moment,
    "count": count,
    "percent": percent,
    "refusal": refusal,
    "json_text": json_text,
    "letter_reason": letter_reason,
    "plural": plural,
    "sentence": sentence,
    "run_ms": run_ms,
    "run_scope": run_scope,
    "run_value": run_value,
    "upload_sha256": uploaded_sha256,
    "usd": usd,
    "file_kind": file_kind,
    "file_pages": file_pages,
    "file_size": file_size,
    "clock": clock,
    "type_name": type_name,
}


TYPE_CHOICES = {"": "Turns and summaries", "items": "Facts of all kinds"} | {
    name: of.plural for name, of in TYPES.items()
}

ROLES = ("user", "assistant", "system", "tool")

EMBEDDING_STATUSES = {
    "ready": "embedded",
    "pending": "not embedded yet",
    "stale": "to be embedded again",
    "failed": "failed: found by words only",
    "not_applicable": "hidden from searches",
}

MODE_SOURCES = {
    "caller": "named by the caller",
    "model": "chosen by a model",
    "project_default": "the project's default",
    "user_default": "the user's default",
    "fallback": "no mode was named",
}

DECAY_TIMES = {
    "fast": "loses weight within days",
    "medium": "loses weight within weeks",
    "slow": "loses weight within months",
    "none": "keeps its weight",
}

INTERACTION_MODES = {
    "TASK": "something to do",
    "EXPLORATION": "weighing options",
    "DEBUGGING": "something is broken",
    "LEARNING": "something to understand",
    "GENERAL": "none of these",
}
"""The purpose of a turn; it decides the budgets of a context."""


SURE_FROM = 0.7
"""Minimum confidence for a mode other than GENERAL (docs/contract.md)."""


def kind_of(memory: Mapping[str, Any]) -> str:
    """Return the kind of a record: a turn, a kind of fact found in turns, or a summary."""
    origin = memory.get("origin", "said")
    if origin == "distilled":
        return "Summary"
    if origin == "extracted":
        return sentence(str(memory.get("kind") or memory["type"]).replace("_", " "))
    return "Turn"


def speaker_of(memory: Mapping[str, Any]) -> str:
    """Return the speaker's name, else the role; a summary has neither."""
    return str(memory.get("speaker") or memory.get("role") or "summary")


def interaction_reason(memory: Mapping[str, Any]) -> str:
    if memory.get("interaction_mode") is None:
        return "not decided yet: the next context with this turn decides"
    if memory.get("interaction_corrected"):
        return "corrected by hand"
    confidence = memory.get("interaction_confidence") or 0.0
    if confidence < SURE_FROM:
        return f"no other is likely enough: {percent(confidence)}"
    reader = f"the model {memory['model']}" if memory.get("understanding") == "model" else "rules and the classifier"
    return f"{percent(confidence)} sure, by {reader}"
