"""Writes the vector index: new vectors as memories come, and jobs that check, rebuild and repair them."""
