"""The embedder in a process of its own, and its protocol."""
