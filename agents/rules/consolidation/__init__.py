"""Consolidation: candidates, extractive summaries, deduplication, decay, schedule."""
