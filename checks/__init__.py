"""Checks of the sources that no linter offers."""

PRODUCT = ("schemas", "agents", "streams", "operations", "gateway", "client")
"""The folders that are installed; tests, benchmarks and training are not."""
