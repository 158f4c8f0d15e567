"""The word index: one SQLite file a partition."""
