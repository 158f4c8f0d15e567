"""The version of the product, and the number of its release."""

VERSION = "1.0.0"
"""The version in `pyproject.toml`, which is not in the container."""

RELEASE = 1
"""1 for 1.0.0. Raised with each release that writes new kinds of data into topics, tables or indexes."""
