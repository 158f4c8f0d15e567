"""In-memory columns of a user's memories and the statistics of BM25."""
