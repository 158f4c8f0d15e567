"""The vector index: Qdrant Edge in this process, or a Qdrant server, under one contract."""
