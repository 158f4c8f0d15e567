"""A consolidation run: summaries, deduplication, progress."""
