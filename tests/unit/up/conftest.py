"""Fixtures of the tests of the supervisor."""

from pathlib import Path

import pytest

from streams.up.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.create()
    return layout
