"""Writes the vector index: vectors of new and changed memories, and jobs that check, rebuild and repair them."""
