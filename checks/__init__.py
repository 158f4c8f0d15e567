"""Checks of the source that no linter has: `python -m checks.vocabulary`."""
