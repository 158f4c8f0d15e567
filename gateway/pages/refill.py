"""Put the input back into a page's form, and mark the refused field. Pure."""

from collections.abc import Mapping, Sequence
from html import escape
from html.parser import HTMLParser
from urllib.parse import urlsplit

KEPT = ("hidden", "submit", "password", "file")
"""Types of inputs that keep the page's own value."""

TICKED = ("checkbox", "radio")

ERROR_ID = "refusal"

Attributes = dict[str, str | None]


def refilled(page: str, action: str, fields: Mapping[str, Sequence[str]], wrong: str | None) -> str:
    """Return a page whose first form with this action has these fields; the field `wrong` is marked as invalid.

    >>> refilled('<form action="/a" method="post"><input name="n" value=""></form>', "/a", {"n": ["x"]}, "n")
    '<form action="/a" method="post"><input name="n" value="x" aria-invalid="true" aria-describedby="refusal"></form>'
    """
    copy = _Copy(urlsplit(action).path, fields, wrong)
    copy.feed(page)
    copy.close()
    return "".join(copy.out)


class _Copy(HTMLParser):
    """Copies a page piece by piece."""

    def __init__(self, path: str, fields: Mapping[str, Sequence[str]], wrong: str | None) -> None:
        super().__init__(convert_charrefs=False)
        self.out: list[str] = []
        self._path, self._fields, self._wrong = path, fields, wrong
        self._is_inside = self._is_done = False
        self._chosen: Sequence[str] | None = None
        """Values of the select that is open."""
        self._drops_text = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given: Attributes = dict(attrs)
        if tag == "form" and not self._is_done:
            is_post = given.get("method") == "post"
            self._is_inside = self._is_done = is_post and urlsplit(given.get("action") or "").path == self._path
        changed = self._changed(tag, given) if self._is_inside else None
        if changed is None:
            self.out.append(self.get_starttag_text() or "")
        else:
            texts = (f" {key}" if value is None else f' {key}="{escape(value)}"' for key, value in changed.items())
            self.out.append(f"<{tag}{''.join(texts)}>")
        if changed is not None and tag == "textarea":
            # A parser drops the first line break of a text area.
            self.out.append("\n" + escape(self._fields[given["name"] or ""][-1], quote=False))
            self._drops_text = True

    def _changed(self, tag: str, given: Attributes) -> Attributes | None:
        """Return the attributes that a tag of the form has instead; None for a tag that stays."""
        name, kind = given.get("name") or "", given.get("type")
        if tag == "option" and self._chosen is not None and "value" in given:
            is_chosen = given["value"] in self._chosen
            return {key: value for key, value in given.items() if key != "selected"} | (
                {"selected": None} if is_chosen else {}
            )
        if tag == "input" and kind in TICKED:
            is_ticked = given.get("value", "on") in self._fields.get(name, ())
            return {key: value for key, value in given.items() if key != "checked"} | (
                {"checked": None} if is_ticked else {}
            )
        if tag not in ("input", "select", "textarea") or name not in self._fields or kind in KEPT:
            return None
        if tag == "select":
            self._chosen = self._fields[name]
        elif tag == "input":
            given = {**given, "value": self._fields[name][-1]}
        return given | ({"aria-invalid": "true", "aria-describedby": ERROR_ID} if name == self._wrong else {})

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = self._is_inside and tag != "form"
        self._chosen = None if tag == "select" else self._chosen
        self._drops_text = self._drops_text and tag != "textarea"
        self.out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self._drops_text:
            self.out.append(data)

    def handle_entityref(self, name: str) -> None:
        self.handle_data(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.handle_data(f"&#{name};")

    def handle_decl(self, decl: str) -> None:
        self.out.append(f"<!{decl}>")
