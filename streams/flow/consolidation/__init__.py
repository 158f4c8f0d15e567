"""A consolidation run: turns understood again, distillation, deduplication, progress."""
