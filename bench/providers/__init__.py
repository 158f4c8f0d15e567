"""Providers of modestream for benchmarks of others, and a run of them here."""
