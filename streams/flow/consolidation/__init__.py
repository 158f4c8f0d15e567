"""A consolidation run: distillation, deduplication, progress."""
