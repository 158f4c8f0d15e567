"""The embedder in its own process, and its protocol."""
