"""Intentions: extraction from turns, transitions, resolution, views."""
