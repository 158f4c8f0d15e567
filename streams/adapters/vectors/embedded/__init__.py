"""The vector index in the worker's process, on Qdrant Edge."""
