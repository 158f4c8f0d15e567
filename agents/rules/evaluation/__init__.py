"""Evaluation on a user's own log: questions with their evidence, and the share of it that two revisions find."""
