"""Declaring modes, choosing a turn's mode, suggesting new ones."""
