"""Prompts for language models, filled in."""
