"""Sentence labels by patterns: rules, corrections, decisions, errors, and the intent of a turn."""
