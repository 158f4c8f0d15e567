"""Declared modes, and which mode a turn is in."""
