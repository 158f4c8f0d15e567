"""Intentions: extraction from turns, state transitions, resolution, views."""
