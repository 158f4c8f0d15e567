"""In-memory columns of a boundary's memories, the vocabulary and BM25."""
