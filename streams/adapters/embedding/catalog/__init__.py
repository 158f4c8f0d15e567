"""The embedders by name, and their loading."""
