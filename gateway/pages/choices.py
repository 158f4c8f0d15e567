"""Memories that are ticked in a list: each as the value of its box, with what moving it back needs."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gateway.pages.forms import Form
from gateway.service.failures import Refused
from gateway.service.selections import Selected


class Choice(NamedTuple):
    """A memory, the mode that it was in when it was shown, and its scope without the user."""

    memory_id: str
    mode: str
    scope: Mapping[str, str]

    @property
    def value(self) -> str:
        """The value of its box."""
        return json.dumps([self.memory_id, self.mode, self.scope], ensure_ascii=False)

    @property
    def selected(self) -> Selected:
        """The memory as the service selects it."""
        return Selected(self.memory_id, self.scope)


def choice_of(listed: Mapping[str, Any], place: Mapping[str, str]) -> Choice:
    """Return the choice of a memory of a list, or of a record; `place` is its scope without the user."""
    return Choice(listed["memory_id"], listed["mode"], place)


def chosen(form: Form, scope_fields: frozenset[str], field: str = "selected") -> Sequence[Choice]:
    """Return what is ticked; `scope_fields` are those without the user.

    Raises Refused where nothing is ticked, and for values that are none of ours.
    """
    choices = [_parsed(value, scope_fields) for value in form.all(field)]
    if not choices:
        raise Refused("invalid_value", "select at least one memory: go back and tick the boxes of its row", "selected")
    return choices


def _parsed(value: str, scope_fields: frozenset[str]) -> Choice:
    try:
        memory_id, mode, scope = json.loads(value)
        is_sound = all(isinstance(one, str) for one in (memory_id, mode, *scope, *scope.values()))
    except (ValueError, TypeError, AttributeError):
        is_sound = False
    if not is_sound or not scope_fields.issuperset(scope):
        raise Refused("invalid_value", "this selection can't be read; load the list again", "selected")
    return Choice(memory_id, mode, scope)
