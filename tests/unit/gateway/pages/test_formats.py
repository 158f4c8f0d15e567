"""Formats of pages, by their own examples, and what they escape."""

import doctest

from gateway.pages import charts, formats, refill
from gateway.pages.routes import ask, pipelines


def test_examples_hold() -> None:
    for module in (charts, formats, refill, ask, pipelines):
        assert doctest.testmod(module).failed == 0


def test_a_time_is_escaped() -> None:
    assert "<b>" not in formats.moment("<b>2026")


def test_markup_of_a_turn_is_escaped() -> None:
    assert str(formats.said({"role": "user", "text": "<b> **<i>** `<u>`"})) == (
        "&lt;b&gt; <strong>&lt;i&gt;</strong> <code>&lt;u&gt;</code>"
    )


def test_output_of_a_tool_keeps_its_columns() -> None:
    assert formats.said({"role": "tool", "text": "a  b\n<c>"}) == "<pre>a  b\n&lt;c&gt;</pre>"


def test_a_fence_is_code() -> None:
    assert formats.said({"role": "user", "text": "So:\n```python\nx < 1\n```\nyes"}) == (
        "So:\n<pre><code>x &lt; 1\n</code></pre>yes"
    )
