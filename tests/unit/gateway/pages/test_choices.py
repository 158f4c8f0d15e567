"""Selected memories of a form: the value of a box, and the refusal of any other value."""

import pytest

from gateway.pages.requests import Form
from gateway.pages.routes.memories import Choice, chosen
from gateway.service.calls import Refused

FIELDS = frozenset({"project_id"})


def test_value_of_a_box_is_read_as_its_choice() -> None:
    choice = Choice("m1", "größe\u2028", {"project_id": '"x"'})
    assert chosen(Form({"selected": [choice.value]}), FIELDS) == [choice]


@pytest.mark.parametrize("value", ["[" * 100_000, '["m1", "\ud800", {}]', '["m1", "\\ud800", {}]', "[1, 2, {}]", "{"])
def test_value_that_is_no_choice_is_refused(value: str) -> None:
    with pytest.raises(Refused):
        chosen(Form({"selected": [value]}), FIELDS)
