"""Pipelines: contracts of steps, edits, and the rules for a valid topology."""
