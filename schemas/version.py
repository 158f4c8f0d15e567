"""The version of the product, and the number of its release."""

VERSION = "0.1.0"
"""The version in `pyproject.toml`, which is not in the container."""

RELEASE = 2
"""Raised with each release that writes something new into topics, tables or indexes."""
