"""Pipelines: contracts of steps, edits, and what makes a topology valid."""
