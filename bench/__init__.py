"""Benchmarks: the whole system against its parts, in one run on one machine (`python -m bench`)."""
