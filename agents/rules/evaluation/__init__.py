"""Evaluation on a user's own log: questions with their evidence, and what two revisions find of it."""
