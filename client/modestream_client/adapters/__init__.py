"""Memories of modestream as frameworks for agents take them. Each module needs its framework; no other does."""
