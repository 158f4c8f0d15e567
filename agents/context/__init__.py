"""Assembles contexts within a token budget. Writes nothing."""
