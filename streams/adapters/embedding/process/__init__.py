"""The embedder in a process of its own, and the protocol with it."""
