"""Keeps the records: turns, items and claims, edits, moves and forgetting. One writer for the table `memories`."""
