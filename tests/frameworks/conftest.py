"""Assertions of the suite tell what they compared."""

import pytest

pytest.register_assert_rewrite("tests.frameworks.suite")
