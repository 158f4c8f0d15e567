"""Which embedders there are, and which are loaded."""
